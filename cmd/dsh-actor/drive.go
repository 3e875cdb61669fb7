package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A drive is one run of an agent, from the prompt to the end of what follows
// from it.
type drive struct {
	app      *app
	set      settings
	rt       *runtime.Runtime
	agent    *runtime.Agent
	view     view
	progress *progress
	tree     *tree
	record   record // of the goroutine that follows the log
	begun    time.Time

	mu  sync.Mutex
	why reason // the first thing that ended the turn from here
}

// drive runs the prompt and returns the exit code. An error is one that no
// event tells.
func (a *app) drive(ctx context.Context, set settings, prompt string) (code int, err error) {
	defer set.release()
	d := &drive{app: a, set: set, begun: time.Now(), view: newView(set.output, a.stdout)}
	d.progress = newProgress(a, set, newStopwatch())
	d.tree = newTree(d)
	if err := d.open(ctx); err != nil {
		return exitFailed, d.give(result{}, err)
	}
	d.announce()
	settled := make(chan struct{})
	var followed, guarded sync.WaitGroup
	followed.Go(d.follow)

	// What is sent is in the log when it is taken, so an interrupt finds a turn
	// to cancel.
	quiet := context.WithoutCancel(ctx)
	err = d.prompt(quiet, prompt)
	guarded.Go(func() { d.guard(ctx, settled) })
	if err == nil {
		err = d.agent.WaitIdle(quiet)
	}
	close(settled)
	guarded.Wait()
	state, stateErr := d.agent.State(quiet)
	if closeErr := d.rt.Close(quiet); errors.Is(err, runtime.ErrNotDurable) {
		err = unusable(d.set.place, err) // the rest follows from it
	} else {
		err = errors.Join(err, stateErr, closeErr)
	}
	followed.Wait()
	d.tree.reader.Wait()
	d.progress.stop()
	return d.finish(len(state.Inbox.NextTurn)+len(state.Inbox.NextStep), err)
}

// open makes the runtime and its agent.
func (d *drive) open(ctx context.Context) error {
	limits := map[string]llm.Limits{}
	if d.set.limits != nil {
		limits[d.set.provider] = *d.set.limits
	}
	rt, err := runtime.New(runtime.Options{
		Providers:  map[string]llm.Provider{d.set.provider: d.set.served},
		Limits:     limits,
		Tools:      d.set.tools,
		Store:      d.set.sessions,
		Hooks:      slices.Concat(defaultHooks(d.set.config), []any{d.progress.watch, d.tree}, d.app.hooks),
		Logger:     d.logger(),
		Delegation: runtime.Delegation{MaxDepth: d.set.maxDepth, MaxChildren: d.set.maxChildren},
	})
	if err != nil {
		return err
	}
	d.rt = rt
	if d.agent, err = d.make(ctx); err != nil {
		return errors.Join(err, rt.Close(ctx))
	}
	return nil
}

// make makes the agent, on a new session or on the one that goes on.
func (d *drive) make(ctx context.Context) (*runtime.Agent, error) {
	cfg, past := d.set.config, d.set.past
	spec := runtime.Spec{
		ReasoningEffort: cfg.ReasoningEffort, Temperature: cfg.Temperature, TopP: cfg.TopP, Seed: cfg.Seed, Stop: cfg.Stop,
		Provider: d.set.provider, Model: d.set.model, MaxTokens: d.set.maxTokens,
		System: d.set.system, CWD: d.set.cwd, MaxParallelToolCalls: d.set.maxParallel,
	}
	if past.sameRoute(d.set.route) {
		spec.Provider, spec.Model = "", "" // then the rest of the request's header is the session's, too
	}
	switch {
	case past == nil:
		return d.rt.Create(ctx, spec)
	case past.fork:
		return d.rt.Fork(ctx, past.id, past.boundary, spec)
	}
	spec.ID = dsh.AgentID(past.id) // as it had when it was made
	a, err := d.rt.Resume(ctx, past.id, spec)
	if err != nil {
		return nil, explain(err, past.id)
	}
	return a, nil
}

// prompt gives the agent its prompt or, without one, has it run what is pending.
func (d *drive) prompt(ctx context.Context, text string) error {
	if text != "" {
		return d.agent.Followup(ctx, dsh.UserText(text))
	}
	s, err := d.agent.State(ctx)
	switch {
	case err != nil:
		return err
	case s.Inbox.Empty():
		return fmt.Errorf("nothing is pending in session %s, so a prompt is needed", d.agent.Session())
	}
	return d.agent.Wake(ctx)
}

// logger writes the runtime's own messages to stderr: errors, and with
// --verbose more.
func (d *drive) logger() *zap.Logger {
	level := zapcore.ErrorLevel
	if d.set.verbose {
		level = zapcore.InfoLevel
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.AddSync(d.app.stderr), level))
}

func (d *drive) announce() {
	d.progress.start(d.agent)
	s := started{
		Version: outputVersion, Type: "start", Session: d.agent.Session(), Agent: d.agent.ID(),
		Provider: d.set.provider, Model: d.set.model, CWD: d.set.cwd, Tools: []string{},
		origin: d.set.origin(),
	}
	for _, t := range d.set.tools {
		s.Tools = append(s.Tools, t.Schema().Name)
	}
	d.view.start(s)
}

// follow shows what the run logs until the log is closed. What closes a turn
// that a crash left open is the run's, but none of its turns.
func (d *drive) follow() {
	ledger := d.tree.account()
	closing := d.set.past != nil && !d.set.past.fork
	for ev, err := range d.agent.Follow(context.Background(), d.agent.Loaded()) {
		if err != nil {
			d.progress.line(fail, "reading the log: %v", err)
			return
		}
		d.tree.event(ev, nil, ledger)
		if closing = closing && closes(ev); closing {
			d.progress.closes(ev)
			continue
		}
		d.record.add(ev)
		d.progress.event(ev)
	}
}

// closes reports whether an event may be one of those that close a turn.
func closes(ev dsh.Event) bool {
	switch ev.Type() {
	case dsh.TypeToolFinished, dsh.TypeStepEnd, dsh.TypeTurnEnd:
		return true
	}
	return false
}

// guard cancels the turn when something from outside asks for it. Pending
// input is kept, to be told of. It cancels before it says so, since stderr may
// be stuck.
func (d *drive) guard(ctx context.Context, settled <-chan struct{}) {
	var over <-chan time.Time
	if d.set.timeout > 0 {
		timer := time.NewTimer(d.set.timeout)
		defer timer.Stop()
		over = timer.C
	}
	why, cause, said := byNobody, dsh.Cause{Kind: dsh.CauseUser}, ""
	select {
	case <-settled:
		return
	case <-d.app.stop.soft:
		why = bySignal
		if !d.app.stop.user() {
			cause = dsh.Cause{Kind: dsh.CauseDisposed}
		}
		said = signalName(d.app.stop.last()) + "; ending the turn in order (once more quits at once)"
	case <-over:
		why, cause = byTimeout, dsh.Cause{Kind: dsh.CauseHook, Reason: fmt.Sprintf("--timeout %v is over", d.set.timeout)}
		said = cause.Reason + "; ending the turn in order"
	case <-d.app.stdout.broken:
		why, cause = byOutput, dsh.Cause{Kind: dsh.CauseHook, Reason: "stdout was closed"}
	case <-ctx.Done():
		why, cause = byCaller, dsh.Cause{Kind: dsh.CauseDisposed}
	}
	d.mu.Lock()
	d.why = why
	d.mu.Unlock()
	_ = d.agent.Cancel(context.WithoutCancel(ctx), cause, runtime.KeepInbox)
	if said != "" {
		d.progress.line(warn, "%s", said)
	}
}

func signalName(s os.Signal) string {
	if s == os.Interrupt || s == nil {
		return "interrupted"
	}
	return s.String()
}

// finish tells how the run ended.
func (d *drive) finish(pending int, err error) (int, error) {
	d.mu.Lock()
	why := d.why
	d.mu.Unlock()
	r := &d.record
	code, problem := r.verdict(why, d.app.stop.code())
	end := result{
		Turn: r.turn, OK: problem == nil, ExitCode: code, Text: r.text, Usage: tokensOf(r.usage), Requests: r.requests,
		Steps: r.steps, ToolCalls: r.toolCalls, Retries: r.retries, Pending: pending, Error: problem,
	}
	total := r.usage.Add(d.agent.DescendantUsage())
	end.UsageTotal, end.Cost = tokensOf(total), costOf(d.set.price, d.tree.routes())
	end.Children = append([]childResult{}, d.tree.ended...)
	if r.ended {
		end.Ending, end.Cause = r.ending.Kind, string(r.ending.Cause.Kind)
	}
	end.Session = d.agent.Session()
	d.progress.end(r, end, time.Since(d.begun))
	if err := d.give(end, err); err != nil {
		return exitFailed, err
	}
	return code, d.lost()
}

// give hands the result to the view. An error of the runtime itself takes the
// place of how the turn ended.
func (d *drive) give(end result, err error) error {
	end.Version, end.Type, end.origin = outputVersion, "result", d.set.origin()
	end.Provider, end.Model = d.set.provider, d.set.model
	end.DurationMs = time.Since(d.begun).Milliseconds()
	if d.agent != nil {
		end.Session, end.Agent = d.agent.Session(), d.agent.ID()
	} else if p := d.set.past; p != nil && !p.fork {
		end.Session = p.id
	}
	if err != nil {
		end.OK, end.ExitCode, end.Error = false, exitFailed, problemOf(err)
	}
	if end.Children == nil {
		end.Children = []childResult{}
	}
	d.view.end(end)
	return err
}

// lost returns the error of an output that did not get everything.
func (d *drive) lost() error {
	if err := d.app.stdout.failure(); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	return nil
}
