package runtime_test

import (
	"bytes"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dsh-actor/dsh-actor/runtime"
)

// A logger that lets only errors through is nothing to complain about.
func TestStrictLogger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		core, _ := observer.New(zapcore.ErrorLevel)
		var complaints bytes.Buffer
		newWorld(t, runtime.Options{Logger: zap.New(core, zap.ErrorOutput(zapcore.AddSync(&complaints)))})
		if complaints.Len() > 0 {
			t.Error(complaints.String())
		}
	})
}
