package bench

import (
	"os"
	"testing"

	disk "github.com/dsh-actor/dsh-actor/actors/session/jsonl"
)

// What do sessions in files cost beside encoding each event, where the disk takes
// no time? It compares with the floor jsonl, which encodes and keeps the bytes.
// Barriers are what they are on a disk, and each conversation makes its file. How
// much time a disk takes is a matter of the disk: see the benchmarks of package
// jsonl.
func BenchmarkRatioFiles(b *testing.B) {
	for _, encoding := range []struct {
		name string
		is   disk.Encoding
	}{{"raw", disk.Raw}, {"zstd", disk.Zstd}} {
		for _, shape := range []struct {
			name         string
			w            work
			talks, turns int
		}{
			{"W1", textTurn(pieces), 128, 1},
			{"W2", toolTurn(1, trivial), 128, 1},
			{"W2x10", toolTurn(1, trivial), 32, turns},
		} {
			b.Run(encoding.name+"/"+shape.name, func(b *testing.B) {
				store, err := disk.Open(memoryDir(b), disk.Options{Encoding: encoding.is})
				if err != nil {
					b.Fatal(err)
				}
				over, under := onStore(b, shape.w, store), onFloor(jsonl, shape.w)
				defer over.close(b)
				n := scaled(shape.talks)
				x, y := rounds(b, batch(b, over, n, shape.turns), batch(b, under, n, shape.turns))
				report(b, x, y, n*shape.turns, "floor")
			})
		}
	}
}

// memoryDir returns a directory that is in memory where the system has one.
func memoryDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "bench") //nolint:usetesting // it is not where TempDir is.
	if err != nil {
		b.Log("the directory is on a disk, whose time counts")
		return b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
