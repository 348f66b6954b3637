// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
)

// Server serves the Responses API and Chat Completions over a [Backend]; the package
// documentation lists the routes. It does not check, store or log keys: a handler
// around it must decide who may call it, such as that of package server/access. Set the fields before the first request;
// then the server is safe for concurrent use.
type Server struct {
	// Backend makes the responses. It must be set.
	Backend Backend
	// Store keeps responses and conversations. Nil means the Backend if it is a [Keeper],
	// and otherwise a [Memory].
	Store Store
	// Beside, unless nil, answers for the models that this server's Backend does not have,
	// and keeps their responses and conversations in its own Store. The Backend must then be
	// a [ModelLister]. A conversation belongs to the first that answers in it; a request that
	// continues something of the other one is refused. It gets the Admit, MaxBody, Now, NewID,
	// Silence, Patience and ErrorLog of this server, unless it has its own, and is closed with it. It
	// cannot be used otherwise, nor have a server beside it.
	Beside *Server
	// Sessions serves the routes for front ends, at /antiphon/v1/sessions: see package
	// server/sessions. Nil means that there are none.
	Sessions http.Handler
	// Without lists the parts of the API that this server does not serve.
	Without []Feature
	// MaxBody is the largest request in bytes; 0 means 256 MiB.
	MaxBody int64
	// Now returns the time for the creation times of objects. Nil means time.Now.
	Now func() time.Time
	// NewID returns a unique id for a response, a conversation or an item, with the
	// given prefix, such as "resp_". Nil means random ids.
	NewID func(prefix string) string
	// Admit, unless nil, is called for each request that is to make a response, or to
	// compact one, when it is checked and before the backend is. An error refuses the
	// request; see [Error]. The returned function, unless it is nil, is called once: before
	// the last event is sent, so that a client that has read it can begin the next response, or
	// when the backend has returned after a refusal or a cancel. The context may say who
	// sent the request: see [CallerOf]. It does not for a response that an earlier server
	// began, whose Request has only a Model.
	Admit func(ctx context.Context, r *Request) (done func(Outcome), err error)
	// Silence is how long a stream may have nothing to send. Then it sends a comment, so
	// that proxies keep it open, and a client that is gone is noticed. 0 means 15 seconds.
	Silence time.Duration
	// Patience is how long a client of a WebSocket may take to read a message, to go on sending
	// one, or to answer a ping while it gets a response. 0 means 30 seconds. The HTTP server
	// around this one bounds other connections.
	Patience time.Duration
	// ErrorLog receives the errors of the backend and the store that are not sent to
	// clients. Nil means the log package's standard logger.
	ErrorLog *log.Logger

	memory Memory // the default store

	paired sync.Once
	other  *Server // that both have, once they are paired

	mu       sync.Mutex
	jobs     map[string]*job     // the stored responses that are being made, by id
	held     map[string]*Request // requests that continue a conversation, by its id
	repeated int                 // how many responses did not get the id that they asked for
	lifetime context.Context     // ends background responses
	end      context.CancelFunc
	running  sync.WaitGroup // requests of Start, and background responses
	resuming sync.Once      // begins to look for responses that others left

	keys       map[string]*keyed // requests with an Idempotency-Key; guarded by mu
	ended      []*keyed          // those whose responses are remembered here, the oldest first
	endedBytes int               // of these responses

	changing sync.Mutex // held while a conversation is read and stored again
}

const defaultMaxBody = 256 << 20

// Start serves on a free port of 127.0.0.1 until stop is called. The base URL is the
// one to configure in a client; it ends in /v1. stop ends running requests and waits
// for them. It may be called more than once.
//
// A request whose Host is not loopback is refused: a page of another site could
// otherwise reach the server through a name of its own.
func (s *Server) Start() (baseURL string, stop func(), err error) {
	if s.Backend == nil {
		return "", nil, errors.New("server: no Backend is set")
	}
	if err := s.noStore(); err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // listening on a loopback address does not wait
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.lookForLeft()
	server := s.onLoopback(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // always ends with ErrServerClosed
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		s.shut()
		_ = server.Close() // errors of connections do not matter any more
		<-served
		s.Close()
	})
	return "http://" + listener.Addr().String() + "/v1", stop, nil
}

// noStore returns an error for a server whose Store is a nil pointer, which is not no Store.
func (s *Server) noStore() error {
	for _, one := range []*Server{s, s.Beside} {
		if one != nil && one.Store != nil && nils.Is(one.Store) {
			return fmt.Errorf("server: the Store is a nil %T: make one, or set none to keep responses in memory", one.Store)
		}
	}
	return nil
}

// onLoopback returns a server for a listener on a loopback address. ctx is that of its
// requests.
func (s *Server) onLoopback(ctx context.Context) *http.Server {
	return &http.Server{
		Handler: LoopbackOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.enter() {
				defer s.running.Done()
				s.ServeHTTP(w, r)
			}
		})),
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
}

// Close cancels background responses and waits for them. Shut down the [http.Server]
// first.
func (s *Server) Close() {
	s.shut()
	s.running.Wait()
	if o := s.pair(); o != nil {
		o.Close()
	}
}

// enter registers work that Close must wait for. It returns false if the server is
// closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.living().Err() != nil {
		return false
	}
	s.running.Add(1)
	return true
}

func (s *Server) shut() {
	if o := s.pair(); o != nil {
		o.shut()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.living()
	s.end()
}

// living returns the context of work that outlives its request. The caller must hold
// mu.
func (s *Server) living() context.Context {
	if s.lifetime == nil {
		s.lifetime, s.end = context.WithCancel(context.Background())
	}
	return s.lifetime
}

func (s *Server) store() Store {
	if s.Store != nil {
		return s.Store
	}
	if k := s.keeper(); k != nil {
		return k
	}
	return &s.memory
}

// keeper returns the backend if it keeps the responses, or nil.
func (s *Server) keeper() Keeper {
	if k, ok := s.Backend.(Keeper); ok && s.Store == nil {
		return k
	}
	return nil
}

// forget ends a response that was not stored, and whose connection does not continue it.
func (s *Server) forget(r *Request, id string) {
	if k := s.keeper(); k != nil && !r.Stored {
		k.Forget(id)
	}
}

// now returns the time in seconds since 1970.
func (s *Server) now() float64 {
	now := s.Now
	if now == nil {
		now = time.Now
	}
	return float64(now().Unix())
}

func (s *Server) newID(prefix string) string {
	if s.NewID != nil {
		return s.NewID(prefix)
	}
	return prefix + rand.Text()
}

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}
