// Reads recorded connections, each a file, with Go's net/http, and prints the requests in them: see serve/parsers.rs.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, name := range os.Args[1:] {
		file, err := os.Open(name)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(out, read(out, bufio.NewReader(file)))
		file.Close()
	}
}

func read(out io.Writer, from *bufio.Reader) string {
	for {
		if _, err := from.Peek(1); err == io.EOF {
			return "end"
		}
		request, err := http.ReadRequest(from)
		if err != nil {
			return ending(err)
		}
		h := fnv.New32a()
		// FNV-1a, as the others have it.
		n, err := io.Copy(h, request.Body)
		if err != nil {
			return ending(err)
		}
		nonce := strings.Join(request.Header.Values("X-Nonce"), ",")
		fmt.Fprintf(out, "%s %s %s %d %d\n", request.Method, request.RequestURI, latin1(nonce), n, h.Sum32())
	}
}

// latin1 shows each byte of a field as a character, as the other parsers do: a field may have bytes above 0x7f.
func latin1(bytes string) string {
	runes := make([]rune, len(bytes))
	for i := 0; i < len(bytes); i++ {
		runes[i] = rune(bytes[i])
	}
	return string(runes)
}

func ending(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "cut"
	}
	return "malformed " + err.Error()
}
