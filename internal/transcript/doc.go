// Package transcript tells people what a session log holds.
//
// A [Fold] turns events into items: turns and steps with what they cost, who
// said what, calls and their results, retries, and notes of everything else
// that matters to a reader. A [Printer] writes them as text. Both take one event
// at a time and keep nothing of what is over, so that a log may be as long as it
// likes and may still be growing. A [Summary] folds a log into a line of a list.
//
//	p := transcript.NewPrinter(os.Stdout, transcript.Options{Width: 80})
//	p.Session(&header)
//	for _, ev := range events {
//		p.Event(&ev)
//	}
//	p.End()
//
// The package is pure: no clock, no files, no terminal. What a log holds was
// written by models, tools and strangers; a Printer writes none of its control
// characters. Any list of events that can be decoded can be told, be it a log or
// not: what does not fit together is told as it stands.
package transcript
