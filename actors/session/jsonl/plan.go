package jsonl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// ErrNeedsCut says that a log cannot be repaired without losing events that no
// crash explains the loss of. See [RepairOptions.Cut].
var ErrNeedsCut = errors.New("session log cannot be repaired without cutting events off")

// RepairOptions says what a repair may do. The zero value only plans.
type RepairOptions struct {
	// Apply changes files. Without it nothing is changed, and no lock taken.
	Apply bool
	// Cut allows to cut a damaged log off at the last place before the damage
	// where no turn is open. What lies behind is lost, except in the backup.
	// Look first whether somebody can mend the file by hand.
	Cut bool
	// NoBackup changes a log without keeping a copy of the file as it was.
	NoBackup bool
}

// A Plan is what a repair does, or would do.
type Plan struct {
	// Report is what was found before.
	Report Report
	// Steps is what is to be done, in order. There are none for a log that
	// needs nothing.
	Steps []Step
	// Backup is the copy of the file as it was; empty if none is made, or none
	// was made yet.
	Backup string
	// Path is where the log is when all is done.
	Path string
	// Applied says that it is.
	Applied bool
}

// A StepKind is what a [Step] does. Words are only added.
type StepKind string

// Steps.
const (
	StepCut     StepKind = "cut"     // bytes off the end of the file
	StepRecover StepKind = "recover" // events of a write that is not complete
	StepClose   StepKind = "close"   // a turn that a crash left open
	StepMove    StepKind = "move"    // a log to where it belongs
	StepRemove  StepKind = "remove"  // a file that holds nothing of worth
)

// A Step is one thing that a repair does.
type Step struct {
	Kind StepKind
	// Text says it in words.
	Text string
	// Bytes is how many are cut off, Events how many events are lost by that,
	// recovered or added, as far as they can be read.
	Bytes  int64
	Events int
	// Path is the file that is removed, or where the log is moved to.
	Path string
	// Closers is what is added.
	Closers []dsh.Event
}

// plan says what a repair of the log would do, and what the file holds then; nil
// if that stays as it is. An error says why there is nothing that it could do.
func (s *Store) plan(in *inspection, opts RepairOptions) (p Plan, content []byte, err error) {
	p = Plan{Report: in.Report, Path: in.Path}
	switch in.Verdict {
	case Unreadable, Duplicate:
		return p, nil, in.Err
	case Newer:
		return p, nil, fmt.Errorf("%w; the log may be sound, continue it with the release that wrote it", in.Err)
	case Foreign:
		return p, nil, fmt.Errorf("%w; the log may be sound, export it and import it where logs have the other encoding", in.Err)
	case Unknown:
		return p, nil, in.Err
	case InUse:
		return p, nil, &InUseError{ID: in.ID, Holder: *in.Holder}
	case Corrupt, Invalid:
		content, err = p.cut(in, opts)
	case Empty:
		p.remove(in.Path, "which holds nothing")
	case Leftover:
		if in.Holder != nil && !opts.Apply {
			return p, nil, &InUseError{ID: in.ID, Holder: *in.Holder}
		}
	case Torn, OpenTurn, Misplaced, Sound:
		content, err = p.complete(in)
	}
	if err != nil {
		return p, nil, err
	}
	for _, stray := range in.Stray {
		p.remove(stray, "which is left of a write that was not finished")
	}
	return p, content, s.move(&p, in)
}

func (p *Plan) add(step Step) { p.Steps = append(p.Steps, step) }

func (p *Plan) remove(path, why string) {
	p.add(Step{Kind: StepRemove, Path: path, Text: fmt.Sprintf("remove %s, %s", path, why)})
}

// cut plans to give everything up from the last closed turn before the damage.
func (p *Plan) cut(in *inspection, opts RepairOptions) ([]byte, error) {
	d := in.Damage
	if d.Closed < 0 {
		return nil, fmt.Errorf("%w; nothing can be kept of a log without its header", in.Err)
	}
	lost := int(d.Events - d.Closed)
	text := fmt.Sprintf("cut %s off behind event %d, the last before the damage outside a turn: %s, of which %s could be read",
		amount(int(d.LostBytes), "byte"), d.Closed-1, amount(d.Lost, "line"), amount(lost, "event"))
	if d.Closed == 0 {
		text = fmt.Sprintf("cut all %s off, for no turn ends before the damage: %s, of which %s could be read",
			amount(int(d.LostBytes), "byte"), amount(d.Lost, "line"), amount(lost, "event"))
	}
	if !opts.Cut {
		return nil, fmt.Errorf("%w; %w; it would keep %s and %s", in.Err, ErrNeedsCut, amount(int(d.Closed), "event"), text)
	}
	p.add(Step{Kind: StepCut, Text: text, Bytes: d.LostBytes, Events: lost})
	return in.kept(in.scan.closed), nil
}

// complete plans what opening and continuing the log would do: it drops what is
// not whole, keeps what can be read of it and closes the turn that is open.
func (p *Plan) complete(in *inspection) ([]byte, error) {
	if in.Tail.Bytes == 0 && in.Turn == 0 {
		return nil, nil
	}
	if err := in.load(); err != nil {
		return nil, err
	}
	content := in.data[:in.Whole:in.Whole]
	if in.Tail.Bytes > 0 {
		p.add(Step{
			Kind: StepCut, Bytes: in.Tail.Bytes,
			Text: fmt.Sprintf("cut %s off behind byte %d, from line %d on: %v",
				amount(int(in.Tail.Bytes), "byte"), in.Whole, in.Tail.Line, in.Tail.Reason),
		})
	}
	if n := in.Tail.Recoverable; n > 0 {
		p.add(Step{Kind: StepRecover, Events: n, Text: fmt.Sprintf("keep %s that can be read of them", amount(n, "event"))})
		content = in.kept(in.scan.taken)
	}
	if n := len(in.Closers); n > 0 {
		names := make([]string, n)
		for i := range in.Closers {
			names[i] = in.Closers[i].Type()
		}
		p.add(Step{
			Kind: StepClose, Events: n, Closers: in.Closers,
			Text: fmt.Sprintf("close turn %d, which was interrupted, with %s: %s", in.Turn, amount(n, "event"), strings.Join(names, ", ")),
		})
		content = in.find.box.wrap(content, appendLines(nil, in.Closers))
	}
	return content, nil
}

// move plans to put the log where it belongs.
func (s *Store) move(p *Plan, in *inspection) error {
	if in.Place == "" {
		return nil
	}
	entries, err := os.ReadDir(in.Place)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w; it cannot be moved there: %w", in.Err, err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			return fmt.Errorf("%w; it cannot be moved there, where %s is already", in.Err, e.Name())
		}
	}
	p.Path = filepath.Join(in.Place, s.box.name())
	p.add(Step{Kind: StepMove, Path: p.Path, Text: fmt.Sprintf("move %s to %s, where it belongs", in.Path, p.Path)})
	return nil
}

// amount returns a number with its noun.
func amount(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
