// Package hook is the extension points of an agent's loop.
//
// A plugin is any value; it takes part in each point whose interface it has:
// [PreStep], [Prompt], [Request], [Stream], [RequestError], [TurnStopping],
// [PreTool], [Guard], [AroundTool], [PostTool], [ToolResult], [SessionStart]
// and [Notified]. [NewSet] finds them by type assertion, keeps them in
// registration order and chains them: a link that does not call next decides
// alone.
//
// All of this is user code. It runs on goroutines of its own, never on an
// actor's, and may block; its context is cancelled with the turn and names
// the initiator. The turn stays open until every hook has returned. A panic
// in a hook is that hook's error.
//
//	type clock struct{}
//
//	func (clock) PreStep(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
//		s.Messages = append(s.Messages, dsh.PluginText("clock", time.Now().String()))
//		return next(ctx, s)
//	}
package hook
