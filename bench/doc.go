// Package bench answers a user's questions about speed and size, one per file,
// beside a floor that is measured in the same run: the same work in plain Go.
// README.md says how to run it and holds what came out.
package bench
