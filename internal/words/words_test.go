package words

import (
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func TestWords(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) string { return Ago(now.Add(-d), now) }
	some := int64(300)
	for _, tt := range []struct{ got, want string }{
		{Arguments(`{"path":"a b","n":3,"deep":{"x":[1]}}`), ` deep={"x":[1]} n=3 path="a b"`},
		{Arguments(`{"command":"` + strings.Repeat("x", 200) + `"}`), " command=" + strings.Repeat("x", 59) + "…"},
		{Arguments(`{}`), ""},
		{Arguments(`{"cut":`), ` {"cut":`},
		{Grouped(0), "0"}, {Grouped(999), "999"}, {Grouped(1000), "1,000"}, {Grouped(1234567), "1,234,567"}, {Grouped(-123), "-123"},
		{Plural(1, "retry"), "1 retry"}, {Plural(2, "retry"), "2 retries"}, {Plural(0, "step"), "0 steps"},
		{Result("a\nb\n[exit status 3]", false), ": 2 lines [exit status 3]"},
		{Result("a\n[exit status 0]", false), ": 2 lines"},
		{Result("a\nb", true), ": a"},
		{Result(" ", false), ""}, {Result("one\n", false), ": one"},
		{Printable("a\x1b[2Jb\tc\nd\u009b"), "a[2Jb\tc\nd"},
		{OneLine(" a\n b ", 3), "a b"}, {OneLine("abcd", 3), "ab…"},
		{Duration(12 * time.Millisecond), "12 ms"}, {Duration(1234 * time.Millisecond), "1.2 s"},
		{Duration(12340 * time.Millisecond), "12 s"}, {Duration(83 * time.Second), "1m23s"},
		{ago(-30 * time.Second), "just now"}, {ago(59 * time.Second), "just now"}, {ago(time.Minute), "1m ago"},
		{ago(59 * time.Minute), "59m ago"}, {ago(47 * time.Hour), "47h ago"}, {ago(48 * time.Hour), "2d ago"},
		{ago(59 * 24 * time.Hour), "59d ago"}, {ago(60 * 24 * time.Hour), "2026-01-03"}, {ago(-48 * time.Hour), "2026-03-06"},
		{Usage(dsh.Usage{InputTokens: 1000, OutputTokens: 2}), "1,000 tokens in, 2 out"},
		{Usage(dsh.Usage{InputTokens: 100, OutputTokens: 2, CacheReadTokens: &some, CacheWriteTokens: &some}), "700 tokens in (300 cached, 43 %), 2 out"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
