package loop

import (
	"errors"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Failed returns the outcome of a call that met err. A [tool.Error] in its
// chain names it for programs.
func Failed(err error) hook.Outcome {
	o := errorText("Error: " + err.Error())
	var coded *tool.Error
	if errors.As(err, &coded) {
		f := coded.Failure()
		o.Error = &f
	}
	return o
}

// NotDispatched returns the outcome of a call that an abort kept from running.
func NotDispatched() hook.Outcome {
	o := errorText(dsh.TextNotDispatched)
	o.Error = &dsh.ToolNotDispatched
	return o
}

// Blocked returns the outcome that a review's feedback makes: an error without
// what the tool had attached.
func Blocked(feedback string) hook.Outcome { return errorText(feedback) }

// Aborted returns the outcome of a call whose own does not count because it
// came after the abort. The context that the tool attached was accepted and
// stays.
func Aborted(attached []*dsh.Message) hook.Outcome {
	o := errorText(dsh.TextAborted)
	o.Error = &dsh.ToolAborted
	o.Context = attached
	return o
}

// denied returns the outcome of a call that a policy did not allow.
func denied(v hook.Verdict) hook.Outcome {
	switch {
	case v.Reason != "":
		return errorText("Error: " + v.Reason)
	case v.Kind == hook.Ask:
		return errorText("Error: this call needs approval, and nobody is there to give it")
	}
	return errorText("Error: this call was denied")
}

func errorText(text string) hook.Outcome {
	return hook.Outcome{Content: []dsh.Block{dsh.Text{Text: text}}, IsError: true}
}
