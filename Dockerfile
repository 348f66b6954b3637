# An image with the program alone: static, for a user without rights, with a root that
# may be read-only. Sessions and agreements are in /data, and agents in /agents.
#
#   docker build --build-arg VERSION=$(git describe --always --dirty) -t antiphon .
#   docker run --rm --read-only --tmpfs /tmp --network host -e OPENAI_API_KEY \
#     -v ./agents:/agents:ro -v antiphon:/data antiphon
#
# Give each build its version: work that began with one is not done by a worker of another.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG VERSION
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=${VERSION}" -o /out/antiphon ./cmd/antiphon
RUN mkdir -p /out/data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/antiphon /antiphon
COPY --from=build --chown=65532:65532 /out/data /data
ENV XDG_DATA_HOME=/data
USER 65532:65532
WORKDIR /agents
VOLUME /data
ENTRYPOINT ["/antiphon"]
CMD ["serve", "/agents"]
