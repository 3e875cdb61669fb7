package bench

import "testing"

// W2: step 1 calls one trivial tool, step 2 streams 20 chunks. What is on the
// clock is what it is for W1.
func BenchmarkW2ToolTurn(b *testing.B) { benchTurns(b, onRuntime(b, toolTurn(1, trivial))) }
