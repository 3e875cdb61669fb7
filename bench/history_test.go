package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// past opens conversations that go on from a stored history of so many
// messages. A conversation is past its first turn, which is the dear one of a
// resumed agent, when the clock starts.
type past struct {
	runtimePlace
	messages int
}

func withPast(tb testing.TB, messages int) past {
	store := memory.New()
	return past{runtimePlace{newRuntime(tb, textTurn(1), store), store}, messages}
}

func (p past) open(tb testing.TB) talk {
	ctx := context.Background()
	id := dsh.SessionID(fmt.Sprintf("past-%d", opened.Add(1)))
	log, err := p.store.Create(ctx, dsh.SessionHeader{ID: id})
	if err == nil {
		err = session.Extend(ctx, log, history(p.messages))
	}
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
	a, err := p.rt.Resume(ctx, id, runtime.Spec{Provider: "main", Model: "m"})
	if err != nil {
		tb.Fatal(err)
	}
	t := runtimeTalk{a, p.store}
	t.turn(tb)
	return t
}

var opened atomic.Int64

// talks returns room for as many conversations as are worth opening together,
// and how many turns they can take before one has grown by half.
func (p past) talks() (room []talk, turns int) {
	room = make([]talk, max(1, 640/p.messages))
	return room, len(room) * max(1, p.messages/4)
}

// history is a log with n messages, user and assistant by turns.
func history(n int) []dsh.Event {
	var events []dsh.Event
	log := func(fact dsh.Fact, op dsh.SurfaceOp) {
		events = append(events, dsh.Event{Seq: dsh.Seq(len(events)), Data: fact, Surface: op})
	}
	for turn := 1; turn <= n/2; turn++ {
		id := func(who string) dsh.MessageID { return dsh.MessageID(fmt.Sprintf("%s-%d", who, turn)) }
		user, reply := *dsh.UserText(prompt), *dsh.UserText("42.")
		user.ID, reply.ID = id("user"), id("reply")
		reply.Role, reply.Source = dsh.RoleAssistant, dsh.ModelSource{Provider: "main", Model: "m"}
		log(dsh.TurnStart{Turn: turn}, dsh.SurfaceOp{})
		log(dsh.StepStart{Turn: turn, Step: 1}, dsh.SurfaceOp{})
		log(dsh.UserMessage{Message: &user}, dsh.Append)
		log(dsh.AssistantMessage{Turn: turn, Step: 1, Message: &reply}, dsh.Append)
		log(dsh.StepEnd{Turn: turn, Step: 1}, dsh.SurfaceOp{})
		log(dsh.TurnEnd{Turn: turn, Reason: dsh.Ending{Kind: dsh.EndCompleted}}, dsh.SurfaceOp{})
	}
	return events
}

// Does a step slow down with a long history? A turn of one step with a model
// that says one word.
func BenchmarkStepAtHistory(b *testing.B) {
	for _, n := range []int{10, longHistory} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			p := withPast(b, n)
			defer p.close(b)
			b.ReportAllocs()
			talks, _ := p.talks()
			left := 0
			for b.Loop() {
				if left == 0 {
					b.StopTimer()
					renew(b, p, talks)
					_, left = p.talks()
					b.StartTimer()
				}
				left--
				talks[left%len(talks)].turn(b)
			}
			b.StopTimer()
			endAll(b, talks)
		})
	}
}

const longHistory = 100_000
