package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// An Outcome is what became of a prompt.
type Outcome struct {
	Turn   int
	Ending dsh.Ending
	// Usage sums the turn's requests, failed attempts too.
	Usage dsh.Usage
	// Answer is the turn's last assistant message with content, or nil.
	Answer *dsh.Message
	// Discarded says that the prompt was withdrawn before any turn took it.
	Discarded bool
}

// OK reports whether the turn completed.
func (o Outcome) OK() bool { return o.Ending.Kind == dsh.EndCompleted }

// Text returns the text of the answer.
func (o Outcome) Text() string {
	if o.Answer == nil {
		return ""
	}
	return dsh.TextOf(o.Answer.Content)
}

// Err returns nil for a completed turn, the failure of one that ended in an
// error, and otherwise an error that names the ending.
func (o Outcome) Err() error {
	switch {
	case o.OK():
		return nil
	case o.Discarded:
		return errors.New("the prompt was withdrawn")
	case o.Ending.Failure != nil:
		return o.Ending.Failure
	case o.Ending.Kind == dsh.EndAborted:
		return fmt.Errorf("the turn ended %s by %s", o.Ending.Kind, o.Ending.Cause.Kind)
	}
	return fmt.Errorf("the turn ended: %s", o.Ending.Kind)
}

// Run sends a prompt and waits for the end of its turn. When ctx ends first,
// the prompt is withdrawn (see [Prompt.Withdraw]) and Run returns ctx's error
// at once; [Agent.WaitIdle] waits for the rest. The error is about the agent;
// how the turn ended is in the outcome. With [ErrNotDurable] there is an outcome
// all the same.
func (a *Agent) Run(ctx context.Context, prompt string) (Outcome, error) {
	return a.RunMessage(ctx, dsh.UserText(prompt))
}

// RunMessage is [Agent.Run] for a message.
func (a *Agent) RunMessage(ctx context.Context, m *dsh.Message) (Outcome, error) {
	p, err := a.send(ctx, m)
	if err != nil {
		return Outcome{}, err
	}
	o, err := p.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		p.withdraw()
	}
	return o, err
}

// A Prompt is a message on its way through a turn.
type Prompt struct {
	agent   *Agent
	life    *life
	id      dsh.MessageID
	outcome chan agent.Outcome
}

// Start queues a message for a turn of its own, wakes the agent and returns
// when the message is in the log for good. When ctx ends before that is known,
// the prompt is withdrawn. With [ErrNotDurable] there is a prompt all the same.
func (a *Agent) Start(ctx context.Context, m *dsh.Message) (*Prompt, error) {
	p, err := a.send(ctx, m)
	if err != nil {
		return nil, err
	}
	err = a.durable(ctx, p.life)
	switch {
	case err == nil || errors.Is(err, ErrNotDurable):
		return p, err
	case ctx.Err() != nil:
		p.withdraw()
	}
	return nil, err
}

// send is Start without waiting for the message to be durable: the barriers of
// its turn see to that.
func (a *Agent) send(ctx context.Context, m *dsh.Message) (*Prompt, error) {
	deliver := agent.Followup(m)
	p := &Prompt{agent: a, id: deliver.Message.ID, outcome: make(chan agent.Outcome, 1)}
	l, err := a.instruct(ctx, p.outcome, deliver)
	p.life = l
	if err != nil {
		if l != nil && ctx.Err() != nil {
			p.withdraw()
		}
		return nil, err
	}
	return p, nil
}

// ID returns the message's ID.
func (p *Prompt) ID() dsh.MessageID { return p.id }

// Wait waits for the end of the turn that took the prompt, or until the prompt
// was withdrawn. When it returns nil the outcome is in the log for good;
// [ErrNotDurable] says that a crash may still undo it. A ctx that ends stops the
// waiting only.
func (p *Prompt) Wait(ctx context.Context) (Outcome, error) {
	o, err := await(ctx, p.agent, p.life, p.outcome)
	if err == nil {
		p.outcome <- o // whoever waits again gets it, too
		err = p.agent.durable(ctx, p.life)
	}
	return Outcome(o), err
}

// Withdraw takes the prompt back: it is removed if it is still pending; the
// turn that took it is cancelled, with the cause user, if that runs; otherwise
// nothing happens. Other input is left alone.
func (p *Prompt) Withdraw(ctx context.Context) error {
	reply := make(chan agent.Done, 1)
	p.life.handle.Send(p.withdrawal(reply))
	_, err := await(ctx, p.agent, p.life, reply) // not being there any more is no error
	if err != nil && p.life.handle.Rested() {
		return nil // nor is a turn that was over when the agent was passivated
	}
	return err
}

// withdraw is Withdraw for somebody who leaves.
func (p *Prompt) withdraw() { p.life.handle.Send(p.withdrawal(make(chan agent.Done, 1))) }

func (p *Prompt) withdrawal(reply chan<- agent.Done) agent.Do {
	return agent.Do{Reply: reply, Commands: []loop.Input{
		loop.Remove{ID: p.id},
		loop.Cancel{Cause: dsh.Cause{Kind: dsh.CauseUser}, KeepInbox: true, Holding: p.id},
	}}
}
