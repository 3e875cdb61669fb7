package loop

import (
	"errors"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// ErrNoRoute fails a step that has no provider or no model.
var ErrNoRoute = errors.New("no provider or model: set both on the agent, or supply them from a request hook")

// proposal returns the configuration that the next request starts from: the
// agent's options in the first one of its life, afterwards what was last
// logged less what the adapter had filled in. On resume an effort that the
// log holds for the same route is kept.
func (m *Machine) proposal() *dsh.CallConfig {
	last := m.header.Header
	if last == nil {
		return m.cfg.Call
	}
	logged := &last.Config
	if last.AdapterDefaults != (dsh.AdapterDefaults{}) {
		stripped := last.AdapterDefaults.Strip(last.Config)
		logged = &stripped
	}
	if m.requested {
		return logged
	}
	config := *m.cfg.Call
	if config.ReasoningEffort == "" && config.Provider == logged.Provider && config.Model == logged.Model {
		config.ReasoningEffort = logged.ReasoningEffort
	}
	return &config
}

// prepare begins an attempt: it asks for the configuration of the request.
func (m *Machine) prepare() state {
	switch {
	case m.isAborted():
		return m.endStep()
	case m.turn.prompt.Err != nil:
		return m.failStep(m.turn.prompt.Err)
	}
	m.do(Prepare{Pos: m.pos, Config: m.proposal()})
	return preparing{}
}

// preparing: the request chain is asked for a configuration.
type preparing struct{}

func (preparing) String() string { return "preparing" }

func (s preparing) step(m *Machine, in Input) state {
	switch in := in.(type) {
	case Cancel:
		return s
	case Prepared:
		switch {
		case m.isAborted():
			return m.endStep()
		case in.Config.Provider == "" || in.Config.Model == "":
			return m.failStep(ErrNoRoute)
		}
		header := m.logHeader(in)
		through := m.next - 1
		m.do(Derive{Pos: m.pos, Through: through})
		return deriving{header: header, through: through}
	case HookFailed:
		if m.isAborted() {
			return m.endStep()
		}
		return m.failStep(in.Err)
	default:
		return m.unexpected(s, in)
	}
}

// logHeader logs the header where it is the first of this life or differs from
// the last, and the context where route or window changed.
func (m *Machine) logHeader(in Prepared) *dsh.Header {
	header, last := m.header.Header, m.header.Header
	next := dsh.Header{
		Config: *in.Config, AdapterDefaults: in.Defaults, System: m.turn.prompt.System, Tools: m.turn.prompt.Tools,
	}
	if p := in.Config.Parameters; !p.Equal(m.header.Parameters()) {
		m.append(dsh.Event{Data: dsh.RequestParameters{Parameters: p}, Ignorable: true})
		if last != nil {
			last = m.header.Header // with the new ones
			header = last
		}
	}
	if !m.requested || !last.Equal(&next) {
		reason := dsh.HeaderChange
		switch {
		case last == nil:
			reason = dsh.HeaderInitial
		case !m.requested:
			reason = dsh.HeaderResume
		}
		logged := next // a header that changes nothing takes no memory
		header = &logged
		m.log(dsh.RequestHeader{Header: header, Reason: reason})
		m.requested, m.cfg.Call = true, nil
	}
	route := dsh.RequestContext{
		Provider: in.Config.Provider, Model: in.Config.Model, ContextWindow: in.ContextWindow,
	}
	if c := m.header.Context; c == nil || *c != route {
		m.log(route)
	}
	return header
}

// deriving: the session is asked for the history, which is durable when the
// answer comes.
type deriving struct {
	header  *dsh.Header
	through dsh.Seq // what was asked for
}

func (deriving) String() string { return "deriving" }

func (s deriving) step(m *Machine, in Input) state {
	switch in := in.(type) {
	case Cancel:
		return s
	case Derived:
		switch {
		case m.isAborted():
			return m.endStep()
		case in.Err != nil:
			return m.failStep(in.Err)
		}
		m.do(OpenStream{Pos: m.pos, Request: &dsh.Request{
			Header: s.header, Messages: in.Messages, Session: m.cfg.Session, Pos: m.pos, Through: s.through,
		}})
		return &streaming{header: s.header}
	default:
		return m.unexpected(s, in)
	}
}
