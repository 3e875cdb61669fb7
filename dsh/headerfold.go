package dsh

// A HeaderFold folds the request headers and contexts of a log into what was
// last sent: the header with the parameters beside it. The zero value has seen
// none.
type HeaderFold struct {
	Header     *Header
	Context    *RequestContext
	parameters *Parameters // nil for none
}

// Parameters returns those of the next header, too.
func (f *HeaderFold) Parameters() Parameters {
	if f.parameters == nil {
		return Parameters{}
	}
	return *f.parameters
}

// Apply folds ev; events of other types change nothing.
func (f *HeaderFold) Apply(ev *Event) {
	switch d := ev.Data.(type) {
	case RequestParameters:
		f.parameters = &d.Parameters
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
	if p := f.Parameters(); h != nil && !h.Config.Parameters.Equal(p) {
		with := *h
		with.Config.Parameters = p
		h = &with
	}
	f.Header = h
}
