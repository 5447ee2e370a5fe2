# Built in one stage, run in another: the image holds the runtime, the sources and the production dependencies, nothing else.
# Releases pass this image with its digest. To pin it in a checkout, append @sha256:… as SECURITY.md describes.
ARG BUN_IMAGE=oven/bun:1.4.5-alpine
FROM ${BUN_IMAGE} AS build
WORKDIR /app
COPY package.json bun.lock bunfig.toml ./
# Peers that are needed are dependencies of ours; the others are types and a compiler. Nor does anything read maps,
# declarations and manuals. Licences stay.
RUN bun install --frozen-lockfile --production --omit=peer \
 && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.md' -o -name '*.mdx' \) \
      ! -iname 'licen[cs]e*' ! -iname 'notice*' -exec rm {} +

FROM ${BUN_IMAGE}
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 GATEWAY_DATA_DIR=/data BUN_CONFIG_MAX_HTTP_REQUESTS=8192 \
    HTTP_PROXY= HTTPS_PROXY= http_proxy= https_proxy= ALL_PROXY=
COPY --from=build /app/node_modules ./node_modules
COPY package.json bunfig.toml LICENSE ./
COPY drizzle ./drizzle
COPY src ./src
RUN mkdir -p /data && chown bun:bun /data && chmod 700 /data
USER bun
VOLUME /data
EXPOSE 3000
# Under a name that is answered: with ALLOWED_HOSTS set, 127.0.0.1 is none. The first start of an embedded database may take long.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["bun", "-e", "const host = (process.env.ALLOWED_HOSTS || 'localhost').split(',')[0].trim(); const r = await fetch(`http://127.0.0.1:${process.env.PORT}/readyz`, { headers: { host } }); process.exit(r.ok ? 0 : 1)"]
# `bun` itself, not a script runner in front of it: SIGTERM must reach the gateway.
CMD ["bun", "src/main.ts"]
