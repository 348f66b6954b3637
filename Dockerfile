# An image with the program alone: static, for a user without rights, with a root that
# may be read-only. Sessions and agreements are in /data, and agents in /agents.
#
#   docker build -t antiphon .
#   docker run --read-only --network host -v ./agents:/agents:ro -v antiphon:/data antiphon
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/antiphon ./cmd/antiphon
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
