package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

// tool is a body that counts who runs beside it.
func (w *wild) tool(name string, mode tool.Mode) tool.Tool {
	return tool.New(tool.Definition{Name: name, Mode: mode, Execute: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		w.enter(name, mode)
		defer w.leave(name)
		w.wait(ctx, name, 6*w.pause(name))
		if err := w.act(ctx, name); err != nil {
			return tool.Result{}, err
		}
		r := tool.Text("fine")
		r.Conclude = w.chance(name, 10)
		if w.chance(name, 6) {
			r.Context = []*dsh.Message{dsh.PluginText(name, "noted")}
		}
		return r, nil
	}})
}

// sometimes is a tool that decides its mode per call, or fails to.
func (w *wild) sometimes() tool.Tool {
	return tool.New(tool.Definition{
		Name: "cls",
		Classify: func(json.RawMessage) tool.Mode {
			if w.chance("cls", 10) {
				panic(errBroke)
			}
			return tool.Mode(w.draw("cls", 2))
		},
		Execute: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			w.enter("cls", tool.Parallel)
			defer w.leave("cls")
			w.wait(ctx, "cls", 6*w.pause("cls"))
			return tool.Text("classified"), w.act(ctx, "cls")
		},
	})
}

func (w *wild) enter(name string, mode tool.Mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bodies > 0 && (mode == tool.Exclusive || w.inFlight["exc"]) {
		w.broken = append(w.broken, fmt.Errorf("%s runs beside %d others (exclusive: %v)", name, w.bodies, w.inFlight["exc"]))
	}
	w.bodies++
	w.most = max(w.most, w.bodies)
	w.inFlight[name] = true
}

func (w *wild) leave(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies--
	if name == "exc" {
		w.inFlight[name] = false
	}
}

// respond is the model: it looks at what it is asked and says something.
func (w *wild) respond(req *dsh.Request) script.Response {
	if err := dsh.CheckRequest(req.Messages); err != nil {
		w.complain("request %v: %w", req.Pos, err)
	}
	if w.isCalm() {
		return script.Text("done", 1)
	}
	a := script.Answer{Text: "some words said", Pieces: 1 + w.draw("model", 4)}
	if w.draw("model", 3) == 0 {
		a.Reasoning = "hm"
	}
	for i := range w.draw("model", 7) {
		name := []string{"par", "par", "exc", "cls", "nobody"}[w.draw("model", 5)]
		a.Calls = append(a.Calls, dsh.ToolCall{ID: dsh.CallID(fmt.Sprint("c", i%3)), Name: name, Arguments: "{}"})
	}
	if w.draw("model", 10) == 0 {
		a.Finish = dsh.FinishMaxTokens
	}
	r := a.Response()
	at := w.draw("model", len(r)+1)
	switch w.draw("model", 12) {
	case 0:
		r = append(r[:at:at], script.Hang{})
	case 1:
		r = append(r[:at:at], script.Fail{Err: &dsh.Failure{Code: dsh.CodeRateLimit}})
	case 2:
		r = append(r[:at:at], script.Do{Func: func(context.Context) { panic(errBroke) }})
	case 3:
		r = append(r[:at:at], script.Do{Func: func(context.Context) { runtime.Goexit() }})
	case 4, 5:
		r = slices.Insert(slices.Clone(r), at, script.Step(script.Do{Func: func(context.Context) { time.Sleep(w.pause("model")) }}))
	case 6, 7:
		r = slices.Insert(slices.Clone(r), at, script.Step(script.Delay{For: 50 * time.Millisecond}))
	case 8:
		r = script.Error(&dsh.Failure{Code: dsh.CodeServer, Message: "down"})
	}
	return r
}
