package runtime_test

import "github.com/dsh-actor/dsh-actor/internal/loop"

// observed is what an observer may apply.
type observed = loop.Input
