// Package admission lets the agents of a process share a provider's keys
// politely: an actor admits each request before it is sent.
//
// What the actor bounds is in [llm.Limits], per key: open requests, requests
// and tokens per minute. Beyond that it obeys the provider: after a refusal
// for its rate (429, or any failure of that code) nobody uses the key until
// the time that the provider asked for is over, and what the provider lets
// through from then on is learned (see key.go). Requests that have not been
// answered yet are few at first and more with each answer, so that a limit
// nobody configured is met by a handful of requests and not by all at once.
//
// Agents take turns, whatever each has waiting. A request waits on the
// goroutine of its own stream, never in an actor, and no longer than its turn:
// a cancel ends the wait at once. Where all keys cool down for more than a
// minute nobody waits: the request fails as the provider would have had it.
//
// Nothing is retried here: a refused request fails, and policy/retry, which
// owns retries, asks again, whereupon it waits here once more.
//
// runtime.Options.Limits puts it before a provider.
package admission
