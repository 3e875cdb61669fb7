package dispatch

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// The small registry still finds everyone by name, and forgets who stopped.
func TestRegistryFindsActors(t *testing.T) {
	system := NewSystem(slog.New(slog.DiscardHandler))
	t.Cleanup(system.Shutdown)
	for _, id := range []string{"deadletter", "eventstream"} {
		if _, ok := system.ProcessRegistry.GetLocal(id); !ok {
			t.Errorf("%s is not found", id)
		}
	}
	p := New()
	defer p.Close()
	stopped := make(chan struct{}, 1)
	props := actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Stopped); ok {
			stopped <- struct{}{}
		}
	}, p.Inline())
	for i := range 1_000 {
		id := fmt.Sprintf("actor-%d", i)
		pid, err := system.Root.SpawnNamed(props, id)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := system.ProcessRegistry.GetLocal(id); !ok {
			t.Fatalf("%s is not found", id)
		}
		if _, err := system.Root.SpawnNamed(props, id); err == nil {
			t.Fatalf("%s exists twice", id)
		}
		system.Root.Stop(pid)
		<-stopped
		if _, ok := system.ProcessRegistry.GetLocal(id); ok {
			t.Fatalf("%s is still found", id)
		}
	}
}
