package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/replay"
)

// A witness knows what processes said and did, and compares it with the logs.
type witness struct {
	plan
	said  map[dsh.SessionID]*said
	found map[dsh.SessionID][][]byte // the events of the last look
	count counts

	parents map[dsh.SessionID]dsh.SessionID // of children
	logs    map[dsh.SessionID][]dsh.Event   // of the last look
	settled bool                            // every session was resumed and closed before the look
}

// said is what was told of the messages of a session.
type said struct {
	sent               []dsh.MessageID // in order
	acknowledged, done map[dsh.MessageID]bool
}

// counts is what was looked at.
type counts struct {
	events, requests, bodies, closers, torn, acknowledged int
	// unmade is how many of the torn logs were never synced.
	unmade int
	// children, how many of them were interrupted, and what parents were told
	// of.
	children, interrupted, notices int
}

func newWitness(p plan) *witness {
	w := &witness{
		plan: p, said: map[dsh.SessionID]*said{}, found: map[dsh.SessionID][][]byte{},
		parents: map[dsh.SessionID]dsh.SessionID{}, logs: map[dsh.SessionID][]dsh.Event{},
	}
	for i := range agents {
		w.said[sessionOf(i)] = &said{acknowledged: map[dsh.MessageID]bool{}, done: map[dsh.MessageID]bool{}}
	}
	return w
}

// hear takes note of a line that a process wrote. The last one of a process
// that was killed may be cut short.
func (w *witness) hear(line string) error {
	words := strings.Fields(line)
	switch {
	case len(words) > 0 && words[0] == "error":
		return errors.New(line)
	case len(words) == 3:
		s, id := w.said[dsh.SessionID(words[1])], dsh.MessageID(words[2])
		switch words[0] {
		case "sent":
			s.sent = append(s.sent, id)
		case "acknowledged":
			s.acknowledged[id] = true
			w.count.acknowledged++
		case "done":
			s.done[id] = true
		}
	}
	return nil
}

// look opens every log as the next process would and compares it with what is
// known.
func (w *witness) look(ctx context.Context) error {
	store, err := w.store()
	if err != nil {
		return err
	}
	requests, err := w.served()
	if err != nil {
		return err
	}
	bodies, err := linesOf(w.effects())
	if err != nil {
		return err
	}
	ids, err := w.sessions(ctx, store, requests)
	if err != nil {
		return err
	}
	for _, id := range ids {
		events, err := readLog(ctx, store, id)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return fmt.Errorf("%s: %w", id, err)
		}
		if w.Forgetful && err == nil {
			if err := w.keep(id); err != nil {
				return err
			}
		}
		mine := slices.DeleteFunc(slices.Clone(bodies), func(call string) bool {
			return !strings.HasPrefix(call, string(id)+"/")
		})
		if err := w.compare(id, events, requests[id], mine); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return w.compareTold()
}

// sessions returns all sessions that there are or must be.
func (w *witness) sessions(
	ctx context.Context, store session.Store, requests map[dsh.SessionID][]served,
) ([]dsh.SessionID, error) {
	all := map[dsh.SessionID]bool{}
	for h, err := range store.List(ctx) {
		if err != nil {
			return nil, err
		}
		all[h.ID] = true
		if isChild(h.ID) {
			w.parents[h.ID] = h.ParentSession
		}
	}
	for id := range w.said {
		all[id] = true
	}
	for id := range w.found {
		all[id] = true
	}
	for id := range requests {
		all[id] = true
	}
	return slices.Sorted(maps.Keys(all)), nil
}

func readLog(ctx context.Context, store session.Store, id dsh.SessionID) ([]dsh.Event, error) {
	log, err := store.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	events, err := log.Read(ctx, 0, 0)
	return slices.Collect(dsh.Expand(events)), errors.Join(err, log.Close())
}

func linesOf(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

// served returns the requests that the model served, by session.
func (w *witness) served() (map[dsh.SessionID][]served, error) {
	lines, err := os.ReadFile(w.requests())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	all := map[dsh.SessionID][]served{}
	for line := range bytes.Lines(lines) {
		var s served
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("request %q: %w", line, err)
		}
		all[s.Session] = append(all[s.Session], s)
	}
	return all, nil
}

func (w *witness) compare(id dsh.SessionID, events []dsh.Event, requests []served, bodies []string) error {
	w.count.events += len(events)
	w.count.requests += len(requests)
	w.count.bodies += len(bodies)
	if err := w.continues(id, events); err != nil {
		return err
	}
	closers := dsh.Closers(events)
	w.count.closers += len(closers)
	whole := append(slices.Clip(events), closers...)
	if again := dsh.Closers(whole); len(again) > 0 {
		return fmt.Errorf("closers need %d closers", len(again))
	}
	if again := dsh.Closers(events); !slices.EqualFunc(encoded(again), encoded(closers), bytes.Equal) {
		return errors.New("closers differ from one time to the next")
	}
	w.logs[id] = events
	err := errors.Join(compareRequests(whole, requests), compareBodies(whole, bodies), replays(events), replays(whole))
	if said := w.said[id]; said != nil {
		err = errors.Join(err, w.compareMessages(said, events))
	}
	return err
}

// replays reports what a replay of the log finds.
func replays(events []dsh.Event) error {
	for _, found := range replay.Run(dsh.SessionHeader{}, events).Findings {
		return fmt.Errorf("replay: %v", found)
	}
	return nil
}

// continues reports a gap, and what an earlier look found and this one does
// not.
func (w *witness) continues(id dsh.SessionID, events []dsh.Event) error {
	for i := range events {
		if events[i].Seq != dsh.Seq(i) {
			return fmt.Errorf("event %d has number %d", i, events[i].Seq)
		}
	}
	before, now := w.found[id], encoded(events)
	if len(now) < len(before) {
		return fmt.Errorf("%d events where there were %d", len(now), len(before))
	}
	for i := range before {
		if !bytes.Equal(before[i], now[i]) {
			return fmt.Errorf("event %d was %s and is %s", i, before[i], now[i])
		}
	}
	w.found[id] = now
	return nil
}

func encoded(events []dsh.Event) [][]byte {
	all := make([][]byte, len(events))
	for i := range events {
		all[i] = events[i].AppendJSON(nil)
	}
	return all
}

// step is the place of a request in a log.
type step struct{ turn, step int }

// compareRequests folds the log and compares each served request with the fold
// up to its answer, or to the end of its step.
func compareRequests(events []dsh.Event, requests []served) error {
	asked := map[step]served{}
	for _, r := range requests {
		at := step{r.Pos.Turn, r.Pos.Step}
		if other, twice := asked[at]; twice {
			return fmt.Errorf("lives %d and %d both asked for the answer of %v", other.Life, r.Life, at)
		}
		if r.Breach != "" {
			return fmt.Errorf("request %v: %s", r.Pos, r.Breach)
		}
		asked[at] = r
	}
	var history dsh.History
	var header dsh.HeaderFold
	sums := map[*dsh.Message]uint64{} // nobody changes these messages
	sum := func(m *dsh.Message) uint64 {
		known, ok := sums[m]
		if !ok {
			known = sumOf(m)
			sums[m] = known
		}
		return known
	}
	check := func(at step) error {
		r, ok := asked[at]
		delete(asked, at)
		if ok && r.Digest != digestBy(header.Header, history.Messages(), sum) {
			return fmt.Errorf("request %v of life %d is not what the log yields", r.Pos, r.Life)
		}
		return nil
	}
	for i := range events {
		var err error
		switch d := events[i].Data.(type) {
		case dsh.AssistantMessage:
			err = check(step{d.Turn, d.Step})
		case dsh.StepEnd:
			err = check(step{d.Turn, d.Step})
		default:
		}
		if err := errors.Join(err, history.Apply(&events[i])); err != nil {
			return err
		}
		header.Apply(&events[i])
	}
	for at := range asked {
		return fmt.Errorf("the model was asked in %v, which the log does not have", at)
	}
	return dsh.CheckRequest(history.Messages())
}

// compareBodies compares the calls whose bodies began with the log.
func compareBodies(events []dsh.Event, bodies []string) error {
	began := map[dsh.CallID]bool{}
	for _, call := range bodies {
		if began[dsh.CallID(call)] {
			return fmt.Errorf("the body of %s ran twice", call)
		}
		began[dsh.CallID(call)] = true
	}
	calls := map[dsh.CallID]int{}
	delegated := map[dsh.CallID]bool{} // they leave no mark
	for i := range events {
		switch d := events[i].Data.(type) {
		case dsh.ToolStarted:
			calls[d.CallID]++
			delegated[d.CallID] = d.Name == "subagent"
		case dsh.ToolFinished:
			call := d.Message.Content[0].(dsh.ToolResult).CallID
			ran := began[call]
			switch {
			case delegated[call]:
			case d.Error == nil && !ran:
				return fmt.Errorf("%s has a result and its body never ran", call)
			case d.Error != nil && (*d.Error == dsh.ToolNotStarted || *d.Error == dsh.ToolNotDispatched) && ran:
				return fmt.Errorf("the log says of %s, whose body ran, %s", call, d.Error.Code)
			}
		default:
		}
	}
	for call := range began {
		if calls[call] != 1 {
			return fmt.Errorf("the body of %s ran with %d tool/calls in the log", call, calls[call])
		}
	}
	return nil
}

// compareMessages compares what was said of messages with the log.
func (w *witness) compareMessages(s *said, events []dsh.Event) error {
	accepted, taken := map[dsh.MessageID]int{}, map[dsh.MessageID]int{}
	for i := range events {
		switch d := events[i].Data.(type) {
		case dsh.InboxSpliced:
			for _, m := range d.Inserted {
				if _, ok := m.Source.(dsh.UserSource); ok {
					accepted[m.ID]++
				}
			}
		case dsh.UserMessage:
			if _, ok := d.Message.Source.(dsh.UserSource); ok {
				taken[d.Message.ID]++
			}
		default:
		}
	}
	had := map[dsh.MessageID]int{}
	for _, id := range s.sent {
		n := accepted[id]
		switch {
		case n > 1 || taken[id] > 1 || taken[id] > n:
			return fmt.Errorf("message %s was accepted %d times and taken %d times", id, n, taken[id])
		case s.done[id] && taken[id] == 0:
			return fmt.Errorf("the turn of message %s ended and the log does not have it", id)
		case s.acknowledged[id] && n == 0:
			return fmt.Errorf("message %s was acknowledged and is lost", id)
		}
		had[id] = n
		delete(accepted, id)
		delete(taken, id)
	}
	for id := range accepted {
		return fmt.Errorf("nobody sent message %s", id)
	}
	for id := range taken {
		return fmt.Errorf("nobody sent message %s", id)
	}
	// What is lost must not come back; what was found is compared by continues.
	s.sent = slices.DeleteFunc(s.sent, func(id dsh.MessageID) bool { return had[id] == 0 })
	return nil
}
