package transcript

import (
	"encoding/json"
	"strings"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/words"
)

// Event types that deserve a note.
const (
	typeTitle      = "session/title"
	compactionPart = "compaction/"
)

// fewWords tells of an event that is no part of the conversation: in a note, or
// by counting it.
func (f *Fold) fewWords(ev *dsh.Event) {
	switch d := ev.Data.(type) {
	case dsh.EndSeed:
		if len(f.items) == 0 { // else this is the border that was just told of
			f.note(NoteBorder, "the session was opened again here")
		}
	case dsh.RequestParameters:
		raw, err := d.Parameters.MarshalJSON()
		if err == nil {
			f.note(NoteOther, "parameters of requests:"+words.Arguments(string(raw)))
		}
	case dsh.Opaque:
		f.opaque(ev, d)
	default:
		f.hide(ev.Type(), 1)
	}
}

func (f *Fold) opaque(ev *dsh.Event, d dsh.Opaque) {
	switch {
	case d.Name == typeTitle:
		f.note(NoteOther, "title: "+titleOf(d.Raw))
	case d.Name == delegation.DescriptorType:
		f.note(NoteSubagent, describe(ev))
	case strings.HasPrefix(d.Name, compactionPart):
		f.note(NoteCompaction, "compaction "+strings.TrimPrefix(d.Name, compactionPart)+words.Arguments(string(d.Raw)))
	default:
		f.hide(d.Name, 1)
	}
}

// titleOf returns the title of a session/title, or its data as it is.
func titleOf(raw json.RawMessage) string {
	var v struct{ Title string }
	if json.Unmarshal(raw, &v) == nil && v.Title != "" {
		return v.Title
	}
	return string(raw)
}

// describe tells what a descriptor says.
func describe(ev *dsh.Event) string {
	d, _, err := delegation.ReadDescriptor([]dsh.Event{*ev}, 0)
	if err != nil {
		return "a sub-agent: " + err.Error()
	}
	said := "a sub-agent"
	if d.Label != "" {
		said += " for " + d.Label
	}
	said += ", " + string(d.Mode)
	if d.Transport != "" {
		said += " by " + string(d.Transport)
	}
	if d.Model != "" {
		said += ", model " + d.Model
	}
	return said
}
