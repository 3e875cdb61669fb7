package torture

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// finds checks that a resumed agent finds all its descendants.
func (w *witness) finds(ctx context.Context, a *runtime.Agent) error {
	list, err := a.Children(ctx, true)
	if err != nil {
		return err
	}
	found := map[dsh.SessionID]bool{}
	for _, e := range list {
		if e.Problem != "" {
			return fmt.Errorf("child %s is %s", e.ID, e.Problem)
		}
		found[e.ID] = true
	}
	for id := range w.parents {
		if w.top(id) == a.Session() && !found[id] && w.born(id) {
			return fmt.Errorf("%s does not find %s", a.Session(), id)
		}
	}
	return nil
}

// born reports whether a child was made before a crash could keep it from that.
func (w *witness) born(id dsh.SessionID) bool {
	_, ok, _ := delegation.ReadDescriptor(w.logs[id], 0) // what is wrong with it is told elsewhere
	return ok
}

// top returns the session that nobody asked for above one.
func (w *witness) top(id dsh.SessionID) dsh.SessionID {
	for isChild(id) {
		id = w.parents[id]
	}
	return id
}

// compareTold compares what parents know of their children with the children's
// logs: one that is said to work in the background has its task, and nobody is
// told of a life twice. When everything was resumed and closed in order, all
// logs are closed and everybody was told of each last life.
func (w *witness) compareTold() error {
	told := map[dsh.MessageID]int{}
	for id, events := range w.logs {
		for i := range events {
			switch d := events[i].Data.(type) {
			case dsh.InboxSpliced:
				for _, m := range d.Inserted {
					kind, child := delegation.Sender(m)
					if kind != delegation.SettledSource {
						continue
					}
					if told[m.ID]++; told[m.ID] > 1 || w.parents[child] != id {
						return fmt.Errorf("%s was told of %s by %s, for the %d. time", id, child, m.ID, told[m.ID])
					}
				}
			case dsh.ToolFinished:
				text := dsh.TextOf(d.Message.Content[0].(dsh.ToolResult).Content)
				child, works := strings.CutSuffix(text, " works in the background. You will be told when it has settled; do not wait for it or ask.")
				if !works {
					continue
				}
				child = strings.TrimPrefix(child, "Sub-agent ")
				if _, begun := delegation.LifeStart(w.logs[dsh.SessionID(child)], 0); !begun || w.parents[dsh.SessionID(child)] != id {
					return fmt.Errorf("%s believes that %s works, which has no task", id, child)
				}
			default:
			}
		}
	}
	w.count.notices += len(told)
	for id := range w.parents {
		if err := w.compareLife(id, told); err != nil {
			return fmt.Errorf("%s, child of %s: %w", id, w.parents[id], err)
		}
	}
	return nil
}

// compareLife compares a child's last life with what its parent was told.
func (w *witness) compareLife(id dsh.SessionID, told map[dsh.MessageID]int) error {
	w.count.children++
	events := w.logs[id]
	d, ok, err := delegation.ReadDescriptor(events, 0)
	if err != nil {
		return err
	}
	if _, begun := delegation.LifeStart(events, 0); !ok {
		if begun {
			return errors.New("it has a task and no descriptor")
		}
		return nil
	}
	closers := dsh.Closers(events)
	life, err := delegation.LastLife(append(events[:len(events):len(events)], closers...), 0, d.Mode)
	if err != nil {
		return err
	}
	if life.Begun && life.Outcome.Kind == delegation.Interrupted {
		w.count.interrupted++
	}
	if !w.settled {
		return nil
	}
	want := 0
	if life.Begun && d.Mode == delegation.Continuable {
		want = 1
	}
	if n := told[delegation.NoticeID(id, life.At)]; n != want || len(closers) > 0 {
		return fmt.Errorf("its parent was told %d times that it %s; %d closers are missing", n, life.Outcome, len(closers))
	}
	return nil
}
