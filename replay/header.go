package replay

import "github.com/dsh-actor/dsh-actor/dsh"

// preparing reports whether ev stands where a request is prepared, and notes it
// if not. What is prepared is the next attempt: one before it is over.
func (f *fold) preparing(ev *dsh.Event) {
	switch {
	case f.step == nil:
		f.find(ev, KindBracket, "%s, and no step is open", ev.Type())
	case f.step.answered:
		f.find(ev, KindBracket, "%s behind the step's answer", ev.Type())
	default:
		f.over()
	}
}

// requestHeader: a header is logged with the first request of a life and when
// it differs from the last.
func (f *fold) requestHeader(ev *dsh.Event, d dsh.RequestHeader) {
	f.preparing(ev)
	last := f.header.Header
	switch d.Reason {
	case dsh.HeaderInitial:
		if last != nil {
			f.find(ev, KindHeader, "an initial header, and it is not the first of the log")
		}
	case dsh.HeaderResume:
		switch {
		case last == nil:
			f.find(ev, KindHeader, "a header that resumes, and there is none before it")
		case f.headed:
			f.find(ev, KindHeader, "a header that resumes, and nothing was resumed since the last one")
		}
	case dsh.HeaderChange:
		switch {
		case last == nil:
			f.find(ev, KindHeader, "a header that changes, and there is none before it")
		case !f.headed:
			f.find(ev, KindHeader, "the first header since a session/end-seed says that it changes, not that it resumes")
		case last.Equal(f.with(d.Header)):
			f.find(ev, KindHeader, "a header that changes nothing")
		}
	default:
		f.find(ev, KindHeader, "a header with the reason %q, which there is not", d.Reason)
	}
	f.headed = true
}

// with returns h with the parameters in force.
func (f *fold) with(h *dsh.Header) *dsh.Header {
	g := *h
	g.Config.Parameters = f.header.Parameters()
	return &g
}

func (f *fold) requestParameters(ev *dsh.Event, d dsh.RequestParameters) {
	f.preparing(ev)
	if d.Parameters.Equal(f.header.Parameters()) {
		f.find(ev, KindHeader, "parameters that change nothing")
	}
}

func (f *fold) requestContext(ev *dsh.Event, d dsh.RequestContext) {
	f.preparing(ev)
	if last := f.header.Context; last != nil && *last == d {
		f.find(ev, KindHeader, "a request/context that changes nothing")
	}
	if h := f.header.Header; h != nil && (h.Config.Provider != d.Provider || h.Config.Model != d.Model) {
		f.find(ev, KindHeader, "the context is of %s/%s and the header of %s/%s",
			d.Provider, d.Model, h.Config.Provider, h.Config.Model)
	}
}

// checkHeader looks for what should have been logged before the first trace of
// a request.
func (f *fold) checkHeader(ev *dsh.Event) {
	h, c := f.header.Header, f.header.Context
	switch {
	case h == nil:
		f.find(ev, KindHeader, "a request, and the log has no header")
		return
	case !f.headed:
		f.find(ev, KindHeader, "the first request since a session/end-seed has no header of its own")
		f.headed = true // told once
	}
	switch {
	case c == nil:
		f.find(ev, KindHeader, "a request, and the log has no request/context")
	case c.Provider != h.Config.Provider || c.Model != h.Config.Model:
		f.find(ev, KindHeader, "a request to %s/%s, and the last request/context is of %s/%s",
			h.Config.Provider, h.Config.Model, c.Provider, c.Model)
	}
}
