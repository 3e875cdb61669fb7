package dsh

import (
	"iter"
	"slices"
)

// Sources cites events as runs of ascending sequence numbers, in the order in
// which the event lists them. A nil *Sources cites nothing; an empty one is an
// explicit empty citation, which only assistant/message may have.
type Sources struct{ runs []SeqRange }

// SeqRange is the sequence numbers from First through Last.
type SeqRange struct{ First, Last Seq }

// Cite returns sources that list seqs in order.
func Cite(seqs ...Seq) *Sources {
	s := &Sources{}
	for _, seq := range seqs {
		s.With(seq, seq)
	}
	return s
}

// With returns s with the numbers from first through last listed behind it. It
// extends s in place if that is not nil; the caller owns s.
func (s *Sources) With(first, last Seq) *Sources {
	if s == nil {
		s = &Sources{}
	}
	if n := len(s.runs); n > 0 && s.runs[n-1].Last+1 == first {
		s.runs[n-1].Last = last
	} else {
		s.runs = append(s.runs, SeqRange{First: first, Last: last})
	}
	return s
}

// Runs returns the runs in order, which the caller may only read.
func (s *Sources) Runs() []SeqRange {
	if s == nil {
		return nil
	}
	return s.runs
}

// All yields each cited number in order.
func (s *Sources) All() iter.Seq[Seq] {
	return func(yield func(Seq) bool) {
		for _, r := range s.Runs() {
			for seq := r.First; seq <= r.Last; seq++ {
				if !yield(seq) {
					return
				}
			}
		}
	}
}

// Len returns how many numbers s lists.
func (s *Sources) Len() int {
	n := 0
	for _, r := range s.Runs() {
		n += int(r.Last - r.First + 1)
	}
	return n
}

// Contains reports whether s lists seq.
func (s *Sources) Contains(seq Seq) bool {
	return slices.ContainsFunc(s.Runs(), func(r SeqRange) bool { return r.First <= seq && seq <= r.Last })
}

// Equal reports whether s and other list the same numbers in the same order.
// To cite nothing is the same as an empty citation here.
func (s *Sources) Equal(other *Sources) bool { return slices.Equal(s.Runs(), other.Runs()) }

// Expand yields every single event of packed, each [ChunkRun] as its
// [AssistantChunk] events.
func Expand(packed []Event) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for i := range packed {
			run, ok := packed[i].Data.(ChunkRun)
			if !ok {
				if !yield(packed[i]) {
					return
				}
				continue
			}
			for k, chunk := range run.Chunks {
				ev := packed[i]
				ev.Seq += Seq(k)
				ev.Data = AssistantChunk{Turn: run.Turn, Step: run.Step, Chunk: chunk}
				if !yield(ev) {
					return
				}
			}
		}
	}
}
