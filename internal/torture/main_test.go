package torture

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if plan := os.Getenv(childPlan); plan != "" {
		child(plan)
		return
	}
	goleak.VerifyTestMain(m)
}
