// Package actortest runs one agent with real actors for a test: a quiet actor
// system of its own, a session, a tool pool, and the agent between them. Fakes
// sit at the edges only (provider, store, tools, hooks).
//
//	h := actortest.NewAgent(t, actortest.Options{Hooks: []any{deafFor(time.Minute)}})
//	h.Followup("hello")
//	synctest.Wait() // the hook sleeps
//	h.WantLog("turn/start")
//
// Everything stops with the test. In a testing/synctest bubble it must all be
// used from inside.
package actortest
