package delegation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Mode says how a child lives.
type Mode string

// Modes of a child.
const (
	OneShot     Mode = "one-shot"
	Continuable Mode = "continuable"
)

// DescriptorType is the event type of a [Descriptor].
const DescriptorType = "subagent/descriptor"

// DescriptorVersion is the version that this package writes and reads.
const DescriptorVersion = 2

// A Descriptor is the event that says what a child is: exactly one in each
// child's own part of its log, never seen by a model.
type Descriptor struct {
	Version   int       `json:"version"`
	Mode      Mode      `json:"mode"`
	Transport Transport `json:"provider"`
	Label     string    `json:"label,omitempty"`
	// The rest is what a continuable child is resumed with.
	Provider string  `json:"agentProvider,omitempty"`
	Model    string  `json:"agentModel,omitempty"`
	Persona  string  `json:"persona,omitempty"`
	Filter   *Filter `json:"toolFilter,omitempty"`
}

// ErrCorrupt is wrapped by the errors of descriptors that cannot be read.
var ErrCorrupt = errors.New("corrupt descriptor")

// ErrVersion is the error of a descriptor of another version.
var ErrVersion = errors.New("descriptor of another version")

// Fact returns the descriptor as it is logged.
func (d Descriptor) Fact() dsh.Fact {
	d.Version = DescriptorVersion
	raw, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings always marshal.
	}
	return dsh.Opaque{Name: DescriptorType, Raw: raw}
}

// ReadDescriptor returns the first descriptor among events from a sequence
// number on; ok is false if there is none. Those before it are an ancestor's.
func ReadDescriptor(events []dsh.Event, from dsh.Seq) (d Descriptor, ok bool, err error) {
	for i := range events {
		o, opaque := events[i].Data.(dsh.Opaque)
		if !opaque || events[i].Seq < from || o.Name != DescriptorType {
			continue
		}
		d, err = parseDescriptor(o.Raw)
		return d, true, err
	}
	return Descriptor{}, false, nil
}

func parseDescriptor(raw []byte) (d Descriptor, err error) {
	var v struct{ Version *int }
	if err := json.Unmarshal(raw, &v); err != nil || v.Version == nil {
		return d, fmt.Errorf("%w: no version", ErrCorrupt)
	}
	if *v.Version != DescriptorVersion {
		return d, fmt.Errorf("%w: %d", ErrVersion, *v.Version)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	switch {
	case d.Mode != OneShot && d.Mode != Continuable:
		return d, fmt.Errorf("%w: mode %q", ErrCorrupt, d.Mode)
	case d.Mode == Continuable && d.Label == "":
		return d, fmt.Errorf("%w: no label", ErrCorrupt)
	case d.Filter != nil && d.Filter.IsZero():
		return d, fmt.Errorf("%w: an empty filter", ErrCorrupt)
	}
	return d, nil
}
