package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Sizes are measured in processes of their own: in this one every benchmark
// leaves its mark on the heap and on the peak of the resident memory.

// onActors names the runtime among the places; the others are the floors.
const onActors = "runtime"

func placeOf(tb testing.TB, where string, w work) place {
	if where == onActors {
		return onRuntime(tb, w)
	}
	return onFloor(floor(where), w)
}

// sizes is what a child reports.
type sizes struct {
	Heap, RSS, Goroutines float64 // per agent
	TotalMB, PeakMB       float64 // of the process
}

const childEnv = "DSH_ACTOR_BENCH_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		beChild(job)
		return
	}
	os.Exit(m.Run())
}

// inChild measures n agents in a new process.
func inChild(tb testing.TB, where, what string, n int) sizes {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", childEnv, where, what, n))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var s sizes
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		tb.Fatalf("child: %v\n%s%s", err, out, stderr.Bytes())
	}
	return s
}

func beChild(job string) {
	fields := strings.Fields(job)
	n, _ := strconv.Atoi(fields[2])
	tb := childTB{}
	if fields[1] == "passive" {
		_ = json.NewEncoder(os.Stdout).Encode(sizesOfPassive(tb, n))
		return
	}
	p := placeOf(tb, fields[0], toolTurn(1, trivial))
	warm := p.open(tb)
	warm.turn(tb)
	before := measure()
	talks := make([]talk, n)
	renew(tb, p, talks)
	if fields[1] == "crowd" {
		work10(tb, talks)
	} else {
		for _, t := range talks {
			t.turn(tb)
		}
	}
	peak := statusBytes("VmHWM") / (1 << 20)
	// What a turn started may still be saying goodbye.
	time.Sleep(50 * time.Millisecond)
	after := measure()
	goruntime.KeepAlive(talks)
	each := func(a, b float64) float64 { return (a - b) / float64(n) }
	_ = json.NewEncoder(os.Stdout).Encode(sizes{
		Heap: each(after.Heap, before.Heap), RSS: each(after.RSS, before.RSS),
		Goroutines: each(after.Goroutines, before.Goroutines), TotalMB: after.RSS / (1 << 20), PeakMB: peak,
	})
}

// measure returns the sizes of this process.
func measure() sizes {
	goruntime.GC()
	debug.FreeOSMemory() // a second collection, and free pages go back
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return sizes{Heap: float64(m.HeapAlloc), RSS: statusBytes("VmRSS"), Goroutines: float64(goruntime.NumGoroutine())}
}

// statusBytes returns a number of /proc/self/status in bytes, 0 where there is none.
func statusBytes(key string) float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), key+":")
	line, _, _ := strings.Cut(rest, "\n")
	kb, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 64)
	return kb * 1024
}

// childTB lets the code of benchmarks run where no test does.
type childTB struct{ testing.TB }

func (childTB) Helper() {}

func (childTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (childTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
