package torture

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

// childPlan is the variable that makes this test binary a process to be
// killed, and tells it what to do.
const childPlan = "DSH_ACTOR_TORTURE_CHILD"

// patience is how long a process waits for a turn before it sends something
// else.
const patience = 50 * time.Millisecond

// agents is how many agents a process runs.
const agents = 4

func sessionOf(i int) dsh.SessionID { return dsh.SessionID(fmt.Sprintf("a%d", i)) }

// A plan is what a life works on. Dir holds the logs, the requests that the
// model served and the calls whose bodies ran.
type plan struct {
	Dir  string
	Life int
	Seed uint64
	// Raw and Each are the store's encoding and its SyncEach; Forgetful loses
	// what was not synced.
	Raw, Each, Forgetful bool
}

func (p plan) store() (session.Store, error) {
	opts := jsonl.Options{SyncEach: p.Each}
	if p.Raw {
		opts.Encoding = jsonl.Raw
	}
	return jsonl.Open(filepath.Join(p.Dir, "logs"), opts)
}

func (p plan) requests() string { return filepath.Join(p.Dir, "requests") }
func (p plan) effects() string  { return filepath.Join(p.Dir, "effects") }

// A served request is what the model notes of it.
type served struct {
	Session dsh.SessionID
	Pos     dsh.Pos
	Life    int
	Digest  string
	Breach  string // of the rules of dsh.CheckRequest
}

// digest identifies what a model is asked.
func digest(h *dsh.Header, messages []*dsh.Message) string {
	return digestBy(h, messages, sumOf)
}

// digestBy is digest for sums of messages that are known.
func digestBy(h *dsh.Header, messages []*dsh.Message, sum func(*dsh.Message) uint64) string {
	header, err := json.Marshal(h)
	if err != nil {
		return err.Error()
	}
	all := fnv.New64a()
	all.Write(header)
	var word [8]byte
	for _, m := range messages {
		binary.LittleEndian.PutUint64(word[:], sum(m))
		all.Write(word[:])
	}
	return strconv.FormatUint(all.Sum64(), 36)
}

func sumOf(m *dsh.Message) uint64 {
	sum := fnv.New64a()
	sum.Write(m.AppendJSON(nil))
	return sum.Sum64()
}

// A life is the world of one process: a model and tools that leave marks
// outside of it.
type life struct {
	plan
	reliable bool // the model never fails
	kids     atomic.Int64
	mu       sync.Mutex
	rng      *rand.Rand
}

func newLife(p plan) *life {
	return &life{plan: p, rng: rand.New(rand.NewPCG(p.Seed, uint64(p.Life)))}
}

func (l *life) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(n)
}

func (l *life) runtime() (*runtime.Runtime, error) {
	store, err := l.store()
	if err != nil {
		return nil, err
	}
	if l.Forgetful {
		store = forgetful{store, l.plan}
	}
	set, err := subagent.New(subagent.Options{NoControl: true})
	if err != nil {
		return nil, err
	}
	return runtime.New(runtime.Options{
		Store:      store,
		Providers:  map[string]llm.Provider{"script": script.Func(script.Options{}, l.answer)},
		Tools:      append(set.Tools(), l.touch("touch", tool.Exclusive), l.touch("touches", tool.Parallel)),
		Hooks:      set.Hooks(),
		Delegation: runtime.Delegation{MaxDepth: 2, NewID: l.kid},
	})
}

// kid names children over all lives.
func (l *life) kid() dsh.SessionID {
	return dsh.SessionID(fmt.Sprintf("c%d.%d", l.Life, l.kids.Add(1)))
}

// agent opens the session of the i-th agent, or makes it.
func (l *life) agent(ctx context.Context, rt *runtime.Runtime, i int) (*runtime.Agent, error) {
	id := sessionOf(i)
	spec := runtime.Spec{ID: dsh.AgentID(id), Session: id, Provider: "script", Model: "m", CWD: "/torture"}
	a, err := rt.Resume(ctx, id, spec)
	if errors.Is(err, runtime.ErrNotFound) {
		a, err = rt.Create(ctx, spec)
	}
	return a, err
}

// answer notes a request and answers with text, calls or a failure.
func (l *life) answer(req *dsh.Request) script.Response {
	s := served{Session: req.Session, Pos: req.Pos, Life: l.Life, Digest: digest(req.Header, req.Messages)}
	if err := dsh.CheckRequest(req.Messages); err != nil {
		s.Breach = err.Error()
	}
	line, err := json.Marshal(s)
	if err == nil {
		err = mark(l.requests(), string(line))
	}
	switch n := l.draw(20); {
	case err != nil:
		return script.Response{script.Fail{Err: err}}
	case n == 0 && !l.reliable:
		return script.Response{script.Fail{Err: errors.New("the model is away")}}
	case n < 11:
		a := script.Answer{Text: "Let me see.", Pieces: 3}
		for i := range 1 + l.draw(3) {
			name, args := []string{"touch", "touches"}[l.draw(2)], "{}"
			if l.delegates(req.Session) {
				name = "subagent"
				args = fmt.Sprintf(`{"description":"part","prompt":"And here?","run_in_background":%t}`, l.draw(2) == 0)
			}
			id := fmt.Sprintf("%s/%d/%d.%d/%d", req.Session, l.Life, req.Pos.Turn, req.Pos.Step, i)
			a.Calls = append(a.Calls, dsh.ToolCall{ID: dsh.CallID(id), Name: name, Arguments: args})
		}
		return l.slowly(a.Response())
	}
	return l.slowly(script.Text("So it is, as far as anybody can tell.", 1+l.draw(12)))
}

// delegates draws whether an agent gives work away; those that work for another
// rarely do.
func (l *life) delegates(id dsh.SessionID) bool {
	if isChild(id) {
		return l.draw(20) == 0
	}
	return l.draw(10) == 0
}

// isChild tells a child's session by its name.
func isChild(id dsh.SessionID) bool { return strings.HasPrefix(string(id), "c") }

// slowly makes pauses somewhere in r.
func (l *life) slowly(r script.Response) script.Response {
	var slow script.Response
	for _, step := range r {
		if l.draw(4) == 0 {
			slow = append(slow, script.Delay{For: time.Duration(l.draw(2_000)) * time.Microsecond})
		}
		slow = append(slow, step)
	}
	return slow
}

// touch is a tool whose body leaves a mark as the first thing it does.
func (l *life) touch(name string, mode tool.Mode) tool.Tool {
	return tool.New(tool.Definition{
		Name: name, Description: "Leaves a mark.", Mode: mode,
		Parameters: json.RawMessage(`{"type":"object"}`),
		Execute: func(_ context.Context, call tool.Call) (tool.Result, error) {
			if err := mark(l.effects(), string(call.ID)); err != nil {
				return tool.Result{}, err
			}
			time.Sleep(time.Duration(l.draw(3_000)) * time.Microsecond)
			return tool.Result{Content: []dsh.Block{dsh.Text{Text: "touched"}}}, nil
		},
	})
}

// mark appends a line to a file, as a whole or not at all.
func mark(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	return err
}

// child works until it is killed or its input ends, and says what it is told:
// a message is sent, then acknowledged, then done with.
func child(text string) {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		say("error", err)
		return
	}
	ctx := context.Background()
	l := newLife(p)
	rt, err := l.runtime()
	if err != nil {
		say("error", err)
		return
	}
	var stopping atomic.Bool
	var opened, working sync.WaitGroup
	for i := range agents {
		opened.Add(1)
		working.Go(func() {
			a, err := l.agent(ctx, rt, i)
			opened.Done()
			for n := 0; err == nil && !stopping.Load(); n++ {
				err = l.work(ctx, a, n)
			}
			if err != nil && !stopping.Load() {
				say("error", err)
			}
		})
	}
	opened.Wait()
	say("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stopping.Store(true)
	if err := rt.Close(ctx); err != nil {
		say("error", err)
	}
	working.Wait()
	say("closed")
}

var saying sync.Mutex

func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(words...)
}

// work sends an agent one message or some.
func (l *life) work(ctx context.Context, a *runtime.Agent, n int) error {
	if l.draw(3) > 0 {
		return l.prompt(ctx, a, fmt.Sprintf("%s/%d/%d", a.Session(), l.Life, n))
	}
	for i := range 1 + l.draw(4) {
		m := message(fmt.Sprintf("%s/%d/%d.%d", a.Session(), l.Life, n, i))
		send := a.Followup
		if l.draw(3) == 0 {
			send = a.Steer
		}
		say("sent", a.Session(), m.ID)
		if err := send(ctx, m); err != nil {
			return err
		}
		say("acknowledged", a.Session(), m.ID)
	}
	if l.draw(3) == 0 {
		return a.Cancel(ctx, dsh.Cause{Kind: dsh.CauseUser}, l.draw(2) == 0)
	}
	return a.WaitIdle(ctx)
}

// prompt sends a message and waits for its turn to end.
func (l *life) prompt(ctx context.Context, a *runtime.Agent, id string) error {
	m := message(id)
	say("sent", a.Session(), m.ID)
	p, err := a.Start(ctx, m)
	if err != nil {
		return err
	}
	say("acknowledged", a.Session(), m.ID)
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o, err := p.Wait(wait)
	if err != nil && wait.Err() != nil {
		return nil // a turn before failed, and input waits for the next that wakes
	}
	if err == nil && o.OK() { // a turn that was cancelled may have ended before its first step
		say("done", a.Session(), m.ID)
	}
	return err
}

func message(id string) *dsh.Message {
	m := dsh.UserText("What about " + id + "?")
	m.ID = dsh.MessageID(id)
	return m
}
