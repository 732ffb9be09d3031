// A gRPC server and its clients in Go.
//
//	grpc-go serve PORT
//	grpc-go CHECK ADDRESS SECONDS     the last line is the result, as JSON
//
// The check `rate` sends calls open loop: RATE a second over CONNECTIONS connections, whether or not answers come.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type echo interface{}

var cancelled atomic.Int64

func unary(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.BytesValue)
	return in, decode(in)
}

func slow(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	select {
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
		cancelled.Add(1)
	}
	return in, ctx.Err()
}

func counted(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	return wrapperspb.Bytes([]byte(strconv.FormatInt(cancelled.Load(), 10))), nil
}

func both(_ any, stream grpc.ServerStream) error {
	for {
		in := new(wrapperspb.BytesValue)
		if err := stream.RecvMsg(in); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(in); err != nil {
			return err
		}
	}
}

var service = grpc.ServiceDesc{
	ServiceName: "apps.Echo",
	HandlerType: (*echo)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: "Unary", Handler: unary}, {MethodName: "Slow", Handler: slow}, {MethodName: "Counted", Handler: counted},
	},
	Streams: []grpc.StreamDesc{{StreamName: "Both", Handler: both, ServerStreams: true, ClientStreams: true}},
}

func serve(port string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	server.RegisterService(&service, nil)
	checks := health.NewServer()
	checks.SetServingStatus("apps.Echo", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, checks)
	return server.Serve(listener)
}

func dial(address string) (*grpc.ClientConn, error) {
	wire := insecure.NewCredentials()
	if os.Getenv("SCHEME") == "https" {
		pem, err := os.ReadFile(os.Getenv("CA"))
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		wire = credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "localhost"})
	}
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(wire))
}

type result struct {
	Ok     int64  `json:"ok"`
	Failed int64  `json:"failed"`
	Why    string `json:"why"`
	Note   string `json:"note"`
}

func call(conn *grpc.ClientConn, method, body string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out := new(wrapperspb.BytesValue)
	err := conn.Invoke(ctx, "/apps.Echo/"+method, wrapperspb.Bytes([]byte(body)), out)
	return string(out.Value), err
}

// rate sends calls at a constant rate, and counts what became of each.
func rate(address string, seconds float64) result {
	perSecond, connections := number("RATE", 5000), number("CONNECTIONS", 8)
	conns := make([]*grpc.ClientConn, connections)
	for i := range conns {
		conn, err := dial(address)
		if err != nil {
			return result{Failed: 1, Why: err.Error()}
		}
		if _, err := call(conn, "Unary", "first", 5*time.Second); err != nil {
			return result{Failed: 1, Why: "the first call: " + err.Error()}
		}
		conns[i] = conn
	}
	var waiting sync.WaitGroup
	var lock sync.Mutex
	why := map[string]int64{}
	first, last := -1.0, 0.0
	var ok, failed atomic.Int64
	total := int64(seconds * float64(perSecond))
	latencies := make([]float64, total)
	begun := time.Now()
	for sent := int64(0); sent < total; {
		due := min(total, int64(time.Since(begun).Seconds()*float64(perSecond)))
		for ; sent < due; sent++ {
			waiting.Add(1)
			go func(index int64) {
				defer waiting.Done()
				start := time.Now()
				body := strconv.FormatInt(index, 10)
				answer, err := call(conns[index%int64(connections)], "Unary", body, 10*time.Second)
				latencies[index] = time.Since(start).Seconds() * 1000
				if err == nil && answer == body {
					ok.Add(1)
					return
				}
				failed.Add(1)
				lock.Lock()
				defer lock.Unlock()
				if err == nil {
					err = status.Error(codes.DataLoss, "the answer to another call")
				}
				kind := err.Error()
				if len(kind) > 160 {
					kind = kind[:160]
				}
				if why[kind]++; len(why) > 20 {
					delete(why, kind)
				}
				last = time.Since(begun).Seconds()
				if first < 0 {
					first = last
				}
			}(sent)
		}
		time.Sleep(time.Millisecond)
	}
	waiting.Wait()
	sort.Float64s(latencies)
	if failed.Load() == 0 {
		return result{Ok: ok.Load(), Note: fmt.Sprintf("p99 %.0f ms", latencies[total*99/100])}
	}
	return result{ok.Load(), failed.Load(), fmt.Sprintf("from %.1f to %.1f s: %s", first, last, counts(why)), ""}
}

func counts(why map[string]int64) string {
	parts := []string{}
	for code, n := range why {
		parts = append(parts, fmt.Sprintf("%d times %s", n, code))
	}
	sort.Strings(parts)
	return strings.Join(parts, "; ")
}

// repeat does a step until the seconds are over or it fails.
func repeat(address string, seconds float64, step func(*grpc.ClientConn) error) result {
	conn, err := dial(address)
	if err != nil {
		return result{Failed: 1, Why: err.Error()}
	}
	var r result
	for begun := time.Now(); time.Since(begun).Seconds() < seconds; r.Ok++ {
		if err := step(conn); err != nil {
			r.Failed, r.Why = 1, err.Error()
			return r
		}
	}
	r.Note = fmt.Sprintf("%d times", r.Ok)
	return r
}

func inTurns(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, &service.Streams[0], "/apps.Echo/Both")
	if err != nil {
		return err
	}
	out := new(wrapperspb.BytesValue)
	for i := 0; i < 100; i++ {
		body := fmt.Sprint(i)
		if err := stream.SendMsg(wrapperspb.Bytes([]byte(body))); err != nil {
			return err
		}
		if err := stream.RecvMsg(out); err != nil {
			return err
		}
		if string(out.Value) != body {
			return fmt.Errorf("answer is %q, not %q", out.Value, body)
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if err := stream.RecvMsg(out); err != io.EOF {
		return fmt.Errorf("after the last message: %v", err)
	}
	return nil
}

func leave(conn *grpc.ClientConn) error {
	before, err := call(conn, "Counted", "", 5*time.Second)
	if err != nil {
		return err
	}
	if _, err := call(conn, "Slow", "", 100*time.Millisecond); status.Code(err) != codes.DeadlineExceeded {
		return fmt.Errorf("a call that is too slow: %v", err)
	}
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		now, err := call(conn, "Counted", "", 5*time.Second)
		if err != nil {
			return err
		}
		if now != before {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server does not learn within 2 s that the client left")
		}
	}
}

func check(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "apps.Echo"})
	if err == nil && answer.Status != healthpb.HealthCheckResponse_SERVING {
		err = fmt.Errorf("state is %v", answer.Status)
	}
	return err
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func main() {
	if os.Args[1] == "serve" {
		fmt.Println(serve(os.Args[2]))
		os.Exit(1)
	}
	seconds, _ := strconv.ParseFloat(os.Args[3], 64)
	var r result
	switch os.Args[1] {
	case "rate":
		r = rate(os.Args[2], seconds)
	case "both":
		r = repeat(os.Args[2], seconds, inTurns)
	case "deadline":
		r = repeat(os.Args[2], seconds, leave)
	case "health":
		r = repeat(os.Args[2], seconds, check)
	default:
		r = result{Failed: 1, Why: "no such check"}
	}
	line, _ := json.Marshal(r)
	fmt.Println(string(line))
}
