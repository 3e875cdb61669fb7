package dsh

// A HeaderFold folds the request headers and contexts of a log into what was
// last sent: the header with the parameters beside it. The zero value has seen
// none.
type HeaderFold struct {
	Header  *Header
	Context *RequestContext
	// Parameters are those of the next header, too.
	Parameters Parameters
}

// Apply folds ev; events of other types change nothing.
func (f *HeaderFold) Apply(ev *Event) {
	switch d := ev.Data.(type) {
	case RequestParameters:
		f.Parameters = d.Parameters
		f.combine(f.Header)
	case RequestHeader:
		f.combine(d.Header)
	case RequestContext:
		f.Context = &d
	default: // says nothing of requests
	}
}

// combine makes h with the parameters the header.
func (f *HeaderFold) combine(h *Header) {
	if h != nil && !h.Config.Parameters.Equal(f.Parameters) {
		with := *h
		with.Config.Parameters = f.Parameters
		h = &with
	}
	f.Header = h
}
