package jsonl

import (
	"github.com/dsh-actor/dsh-actor/actors/session/verify"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Verdict says in a word what is the matter with a log. Words are only added.
type Verdict string

// Verdicts. With the first four the log can be continued.
const (
	// Sound: nothing is the matter.
	Sound Verdict = "ok"
	// InUse: a process owns the log.
	InUse Verdict = "in use"
	// Torn: a crash cut the last write off. Opening the log repairs that.
	Torn Verdict = "torn"
	// OpenTurn: a crash left a turn open. Continuing the log closes it.
	OpenTurn Verdict = "open turn"

	// Corrupt: the file is damaged in a way that no crash explains.
	Corrupt Verdict = "corrupt"
	// Invalid: the lines are right, and one contradicts what came before.
	Invalid Verdict = "invalid"
	// Unknown: there are events that this build does not know.
	Unknown Verdict = "unknown event"
	// Newer: the log has a later format.
	Newer Verdict = "newer"
	// Foreign: the log is compressed in a store that is not, or the other way
	// round.
	Foreign Verdict = "other encoding"
	// Duplicate: several logs say that they are the same session.
	Duplicate Verdict = "duplicate"
	// Misplaced: the log is not where its header says that it belongs.
	Misplaced Verdict = "misplaced"
	// Empty: the file holds nothing, or no more than a part of the header. That
	// is left of a log that no power failure let become durable.
	Empty Verdict = "empty"
	// Unreadable: the system does not let it be read.
	Unreadable Verdict = "unreadable"

	// Leftover: there is no log, only temporary files of one that is just being
	// made, or was not finished. Nothing is wrong with that.
	Leftover Verdict = "leftover"
)

// Opens reports whether a log with this verdict can be continued.
func (v Verdict) Opens() bool {
	return v == Sound || v == InUse || v == Torn || v == OpenTurn
}

// A Report is what a look at a log found.
type Report struct {
	// Path is the log's, or that of a directory that holds none.
	Path string
	// ID is what the header says or, if that cannot be read, the place.
	ID dsh.SessionID
	// Header is nil if it cannot be read.
	Header *dsh.SessionHeader
	// Size is that of the file.
	Size int64
	// Events is how many can be read, those behind the last whole write
	// included. Whole is where that ends, and Tail what lies behind it.
	Events dsh.Seq
	Whole  int64
	Tail   Tail
	// Turn is the turn that is open at the end, 0 for none; Closers is what
	// closes it.
	Turn    int
	Closers []dsh.Event
	// Damage is where the log stops being readable; nil if it does not.
	Damage *Damage
	// Holder is who owns the log, nil for nobody.
	Holder *Holder
	// Place is where the log belongs, if it is not there.
	Place string
	// Stray is the temporary files beside the log that a crash left. Those of a
	// log that is in use may be just made.
	Stray []string
	// Findings is what is odd and keeps nobody from continuing the log.
	Findings []verify.Finding

	Verdict Verdict
	// Err is why the log cannot be continued, nil if it can or if there is none.
	Err error
}

// Damage says where a log cannot be read on, and what is before.
type Damage struct {
	// Line is the first that is not right; 0 if that cannot be told.
	Line int
	// Reason is what is wrong with it.
	Reason error
	// Events is how many events are before it.
	Events dsh.Seq
	// Closed is the number of the event behind the last place before the
	// damage where no turn is open: what can be kept of the log. It is -1 if
	// there is no such place, because the header itself cannot be read.
	Closed dsh.Seq
	// Lost is how many lines lie behind that place, as far as they can be
	// counted, and LostBytes how much.
	Lost      int
	LostBytes int64
}
