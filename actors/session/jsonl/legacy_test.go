package jsonl

import (
	"slices"
	"strings"
	"testing"
)

// Logs of format 0 from before some of today's events read as today's.
func TestLegacy(t *testing.T) {
	const head = `{"type":"session","version":0,"id":"old","createdAt":1,"delegationDepth":0}` + "\n"
	for name, c := range map[string]struct{ old, now string }{
		"trigger":            {`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1,"trigger":{"kind":"user"}}}`, `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`},
		"steering":           {`{"type":"steering/message","seq":0,"time":1,"data":{"turn":1,"content":[{"type":"text","text":"x"}],"source":{"kind":"user"}},"surfaceOp":"append"}`, `{"type":"user/message","seq":0,"time":1,"data":{"content":[{"type":"text","text":"x"}],"source":{"kind":"user"},"role":"user","id":"legacy-message:old:0"},"surfaceOp":"append"}`},
		"wrapped steering":   {`{"type":"steering/message","seq":0,"time":1,"data":{"turn":1,"message":{"content":[],"source":{"kind":"user"},"role":"user","id":"u"}}}`, `{"type":"user/message","seq":0,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"u"},"surfaceOp":"append"}`},
		"odd steering":       {`{"type":"steering/message","seq":0,"time":1,"data":{"turn":1}}`, ""},
		"user":               {`{"type":"user/message","seq":0,"time":1,"data":{"content":[],"source":{"kind":"user"}},"surfaceOp":"append"}`, `{"type":"user/message","seq":0,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"legacy-message:old:0"},"surfaceOp":"append"}`},
		"assistant":          {`{"type":"assistant/message","seq":0,"time":1,"data":{"turn":1,"step":1,"content":[],"provenance":{"provider":"p","model":"m"}},"surfaceOp":"append"}`, `{"type":"assistant/message","seq":0,"time":1,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"},"id":"legacy-message:old:0"}},"surfaceOp":"append"}`},
		"aborted":            {`{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"aborted"}}}`, `{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"legacy"}}}}`},
		"disposed":           {`{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"disposed"}}}`, `{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"disposed"}}}}`},
		"failure":            {`{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"error","step":1,"failure":{"message":"m","code":"SERVER","status":500}}}}`, `{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"error","error":{"message":"m","code":"SERVER","status":500}}}}`},
		"message":            {`{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"error","step":1,"message":"m"}}}`, `{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"error","error":{"message":"m","code":"UNKNOWN"}}}}`},
		"message and code":   {`{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"error","step":1,"message":"m","code":"TIMEOUT"}}}`, `{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"error","error":{"message":"m","code":"TIMEOUT"}}}}`},
		"odd error":          {`{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"error","step":1}}}`, ""},
		"result and shorter": {`{"type":"tool/result","seq":0,"time":1,"data":{"turn":1,"step":1,"callId":"c","content":[{"type":"text","text":"long"}],"isError":false},"surfaceOp":"append"}` + "\n" + `{"type":"tool/result","seq":1,"time":1,"data":{"turn":1,"step":1,"callId":"c","content":[],"isError":false,"meta":1},"surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[0]}`, `{"type":"tool/result","seq":0,"time":1,"data":{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"c"},"content":[{"type":"tool-result","toolCallId":"c","content":[{"type":"text","text":"long"}],"isError":false}],"role":"user","id":"legacy-message:old:0"}},"surfaceOp":"append"}` + "\n" + `{"type":"tool/result","seq":1,"time":1,"data":{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"c"},"content":[{"type":"tool-result","toolCallId":"c","content":[],"isError":false}],"role":"user","id":"legacy-message:old:0"},"meta":1},"sourceEventSeqs":[0],"surfaceOp":{"op":"replace","start":0,"end":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, scan, err := load("old", rawBox{}, []byte(head+c.old+"\n"))
			if c.now == "" {
				if err == nil && scan.problem == nil {
					t.Error("accepted")
				}
				return
			}
			if err != nil || scan.problem != nil {
				t.Fatal(err, scan.problem)
			}
			want := strings.Split(c.now, "\n")
			if got := jsonOf(scan.out.all()); !slices.Equal(got, want) {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}
