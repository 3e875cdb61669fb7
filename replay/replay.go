package replay

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Report is what a log yields.
type Report struct {
	// Requests are in the order of the log.
	Requests []Request
	// Findings are in the order of the log, too.
	Findings []Finding
	// Events is how many sequence numbers the log has.
	Events dsh.Seq
	// Open says that the log ends inside a turn: it is still being written, or
	// a crash left it so. What is missing then is no finding.
	Open bool
}

// A Request is one attempt to get an answer from a model.
type Request struct {
	Pos dsh.Pos
	// Seq is the first event that tells of the attempt, Through the last one
	// of the history that its messages are derived from. Where no digest was
	// logged, Through is the event before Seq: what hooks put on the surface
	// while the model had not said anything yet is taken for a part of it.
	Seq, Through dsh.Seq
	// Header is nil if the log has none before the request.
	Header *dsh.Header
	// Messages is shared with other requests and must not be written to.
	Messages []*dsh.Message

	Outcome Outcome
	// Failure is why an attempt failed.
	Failure *dsh.Failure
	// Usage is the last count that the stream told, or nil.
	Usage *dsh.Usage
	// Answer is the message in the log at AnswerSeq, or nil.
	Answer    *dsh.Message
	AnswerSeq dsh.Seq

	// Digest says how the request compares with the logged digests.
	Digest Comparison
	// Findings counts those of the report that are about this request.
	Findings int
}

// Outcome says what became of an attempt.
type Outcome string

// Outcomes of an attempt.
const (
	// Answered attempts made the step's answer, also an empty one.
	Answered Outcome = "answered"
	// Interrupted ones were cancelled; what they had said was kept.
	Interrupted Outcome = "interrupted"
	// Failed ones ended with a failure.
	Failed Outcome = "failed"
	// Dropped ones made no answer and the log does not say why: they were
	// cancelled before they said anything, or cut off by a crash.
	Dropped Outcome = "dropped"
	// Pending ones are not over where the log ends.
	Pending Outcome = "pending"
)

// Comparison is that of a derived request with the digests of what was sent.
type Comparison string

// Results of a comparison.
const (
	Unrecorded Comparison = ""
	Same       Comparison = "same"
	Different  Comparison = "different"
)

// A Finding is a place where a log disagrees with itself or with what it
// yields.
type Finding struct {
	Kind Kind
	// Seq is the event where it shows.
	Seq dsh.Seq
	// Pos is the turn, step and attempt open there; zero outside of turns.
	Pos dsh.Pos
	// Text is a sentence for people.
	Text string
}

// String returns the finding as one line.
func (f Finding) String() string {
	if f.Pos.Turn == 0 {
		return fmt.Sprintf("event %d: %s: %s", f.Seq, f.Kind, f.Text)
	}
	return fmt.Sprintf("event %d, %s: %s: %s", f.Seq, f.Pos, f.Kind, f.Text)
}

// Kind groups findings by what disagrees.
type Kind string

// Kinds of findings.
const (
	// KindSequence: sequence numbers are not dense.
	KindSequence Kind = "sequence"
	// KindBracket: turns and steps do not nest, do not count up, or an event
	// stands outside of the step that it names.
	KindBracket Kind = "bracket"
	// KindEnding: the end of a turn lacks its cause or its failure.
	KindEnding Kind = "ending"
	// KindInbox: a splice does not fit, or a claim stands where nothing is
	// claimed.
	KindInbox Kind = "inbox"
	// KindSurface: an event does not fit the surface.
	KindSurface Kind = "surface"
	// KindHeader: a header, parameters or a context were logged for nothing,
	// were not logged when they had to be, or contradict each other.
	KindHeader Kind = "header"
	// KindRequest: a strict provider would refuse the derived messages.
	KindRequest Kind = "request"
	// KindCitation: an answer does not cite the chunks of its attempt.
	KindCitation Kind = "citation"
	// KindAnswer: an answer is not what its chunks make.
	KindAnswer Kind = "answer"
	// KindCall: a tool/call is not the one that the model asked for.
	KindCall Kind = "call"
	// KindResult: a result answers no call, comes twice, out of order or not
	// at all.
	KindResult Kind = "result"
	// KindDigest: what was sent is not what the log yields.
	KindDigest Kind = "digest"
)

// Run replays a log whose events may be packed. It reads them once, never
// fails, and takes time in proportion to their number; the events are not
// written to.
func Run(h dsh.SessionHeader, events []dsh.Event) *Report {
	r := New(h)
	r.Add(events)
	return r.Report()
}

// A Replay is [Run] for a log that is read in parts. It keeps the messages of
// the history and nothing of the chunks.
type Replay struct{ fold fold }

// New begins the replay of a session's log.
func New(h dsh.SessionHeader) *Replay { return &Replay{fold{inherited: h.SeedLength}} }

// Add takes the next events, which may be packed.
func (r *Replay) Add(events []dsh.Event) {
	for ev := range dsh.Expand(events) {
		r.fold.add(&ev)
	}
}

// Next returns the number of the event that is next.
func (r *Replay) Next() dsh.Seq { return r.fold.next }

// Report ends the replay.
func (r *Replay) Report() *Report { return r.fold.done() }

// Matching returns how many requests have no finding, and how many of all were
// compared with a digest and are the same.
func (r *Report) Matching() (asLogged, byDigest int) {
	for i := range r.Requests {
		if r.Requests[i].Findings == 0 {
			asLogged++
		}
		if r.Requests[i].Digest == Same {
			byDigest++
		}
	}
	return asLogged, byDigest
}
