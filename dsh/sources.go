package dsh

import "iter"

// Sources cites events as runs of ascending sequence numbers, in the order in
// which the event lists them. Nil cites nothing; an empty, non-nil list is an
// explicit empty citation, which only assistant/message may have.
type Sources []SeqRange

// SeqRange is the sequence numbers from First through Last.
type SeqRange struct{ First, Last Seq }

// Cite returns sources that list seqs in order.
func Cite(seqs ...Seq) Sources {
	s := Sources{}
	for _, seq := range seqs {
		s = s.With(seq, seq)
	}
	return s
}

// With returns s with the numbers from first through last listed behind it.
// It may extend s in place; the caller owns s.
func (s Sources) With(first, last Seq) Sources {
	if n := len(s); n > 0 && s[n-1].Last+1 == first {
		s[n-1].Last = last
		return s
	}
	return append(s, SeqRange{First: first, Last: last})
}

// All yields each cited number in order.
func (s Sources) All() iter.Seq[Seq] {
	return func(yield func(Seq) bool) {
		for _, r := range s {
			for seq := r.First; seq <= r.Last; seq++ {
				if !yield(seq) {
					return
				}
			}
		}
	}
}

// Len returns how many numbers s lists.
func (s Sources) Len() int {
	n := 0
	for _, r := range s {
		n += int(r.Last - r.First + 1)
	}
	return n
}

// Contains reports whether s lists seq.
func (s Sources) Contains(seq Seq) bool {
	for _, r := range s {
		if r.First <= seq && seq <= r.Last {
			return true
		}
	}
	return false
}

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
