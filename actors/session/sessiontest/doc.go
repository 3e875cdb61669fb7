// Package sessiontest is the conformance kit of session stores: what a runtime
// relies on, as a table of cases, each with the rule that it checks. A store
// that passes can be handed to a runtime.
//
//	func TestStore(t *testing.T) {
//		sessiontest.Run(t, func(t *testing.T) session.Store { return mystore.New() })
//	}
//
// Stores that outlive their process run [RunReopened] as well.
package sessiontest
