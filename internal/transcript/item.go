package transcript

import (
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// An Item is one thing that a reader of a transcript sees: [TurnBegan],
// [TurnEnded], [StepBegan], [StepEnded], [Message], [Answer], [Call], [Result],
// [Retry], [Request], [Note] or [End].
//
//sumtype:decl
type Item interface {
	// Place returns where the item stands.
	Place() At
	isItem()
}

// At is where an item stands in its log.
type At struct {
	Seq  dsh.Seq
	Time int64 // Unix milliseconds
	// Turn is the turn that is open, 0 between turns.
	Turn int
}

// Place returns the place.
func (a At) Place() At { return a }

// Items of a transcript.
type (
	// TurnBegan opens a turn.
	TurnBegan struct{ At }

	// TurnEnded closes a turn.
	TurnEnded struct {
		At
		Ending dsh.Ending
		Took   time.Duration
		Sum    Sum
	}

	// StepBegan opens a step.
	StepBegan struct {
		At
		Step int
	}

	// StepEnded closes a step.
	StepEnded struct {
		At
		Step int
		Took time.Duration
		Sum  Sum
	}

	// Message is a user-role message, whoever wrote it.
	Message struct {
		At
		Message *dsh.Message
		// Replaces is how many events it takes the place of for the model.
		Replaces int
	}

	// Answer is what a model said, without its calls: these are items of their
	// own. Of one that Failed or is Unfinished it is what had come by then, with
	// the calls, which were not run.
	Answer struct {
		At
		Content     []dsh.Block
		Interrupted bool // by a cancel
		Failed      bool // the attempt was given up
		Unfinished  bool // the log ends here
	}

	// Call is a tool call that is about to run.
	Call struct {
		At
		Name      string
		Arguments string
	}

	// Result is how a call ended. Took is from its start until the log had the
	// result, which waits there for those before it; a call that never started
	// has Started false.
	Result struct {
		At
		Name    string
		Started bool
		Took    time.Duration
		Content []dsh.Block
		IsError bool
		// Code names the error for programs; it may be empty.
		Code string
		// Replaces says that the result was rewritten for the model.
		Replaces bool
	}

	// Retry is a request that is to be sent again.
	Retry struct {
		At
		Retry   dsh.RetryScheduled
		Waiting time.Duration
	}

	// Request is the first header of requests, or a change of it.
	Request struct {
		At
		Header *dsh.Header
		Before *dsh.Header // nil for the first
	}

	// Note is any other fact that is worth a line.
	Note struct {
		At
		Kind NoteKind
		Text string
	}

	// End is what is to be said when the events are over.
	End struct {
		At
		// Step is the open step of the open turn, 0 for none.
		Step    int
		Pending []*dsh.Message
		// Hidden counts the events that no item tells of, by their type.
		Hidden []Count
		// Events is how many there were, Sum what they add up to, without
		// what was copied from another session.
		Events dsh.Seq
		Turns  int
		Sum    Sum
	}
)

func (TurnBegan) isItem() {}
func (TurnEnded) isItem() {}
func (StepBegan) isItem() {}
func (StepEnded) isItem() {}
func (Message) isItem()   {}
func (Answer) isItem()    {}
func (Call) isItem()      {}
func (Result) isItem()    {}
func (Retry) isItem()     {}
func (Request) isItem()   {}
func (Note) isItem()      {}
func (End) isItem()       {}

// NoteKind says what a [Note] is about.
type NoteKind int

// Kinds of notes.
const (
	// NoteOther is about anything else.
	NoteOther NoteKind = iota
	// NoteBorder is where history ends that was loaded or copied.
	NoteBorder
	// NoteCompaction is about the history's being made shorter.
	NoteCompaction
	// NoteSubagent says what the session is to its parent.
	NoteSubagent
	// NoteInput is about input that no turn took.
	NoteInput
)

// Count is a number of events of one type.
type Count struct {
	Type string
	N    int
}

// Sum is what a step, a turn or a session adds up to.
type Sum struct {
	Steps, Retries int
	// CallsFailed of the Calls ended with an error. Calls that never started
	// are among both.
	Calls, CallsFailed int
	Requests           int
	Usage              dsh.Usage
}
