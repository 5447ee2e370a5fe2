/**
 * Dashboard files: bundled from `dashboard/` on the first request, kept in memory, compressed once. This keeps the
 * bundler out of startup. A file name contains the hash of its content, so all processes of one release use the same
 * names and browsers may cache the files permanently.
 */
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { DashboardBundle, SiteFile } from '../routes/dashboard/routes.ts'

const entry = new URL('../dashboard/index.html', import.meta.url)

/** Builds nothing before the first `files()`. After a failed build, the next call builds again. */
export function createDashboardBundle(): DashboardBundle {
  let building: Promise<ReadonlyMap<string, SiteFile>> | null = null
  return {
    files() {
      building ??= build().catch(cause => {
        building = null
        throw cause
      })
      return building
    },
  }
}

async function build(): Promise<ReadonlyMap<string, SiteFile>> {
  const { outputs } = await Bun.build({
    entrypoints: [Bun.fileURLToPath(entry)],
    target: 'browser',
    minify: true,
    publicPath: '/assets/',
    jsx: { runtime: 'automatic', importSource: 'preact', development: false },
  })
  const built = await Promise.all(
    outputs.map(async output => {
      const text = await output.text()
      const name = output.path.replace(/^\.?\//, '')
      return { name, type: output.type, text, keptAs: name === pageName ? name : contentName(name, text) }
    }),
  )
  const files = built.map(async ({ name, type, text, keptAs }) => {
    const written = name === pageName ? renamed(text, built) : text
    return [keptAs, await packed(type, new TextEncoder().encode(written))] as const
  })
  return new Map(await Promise.all(files))
}

const pageName = 'index.html'

/** The bundler's own hashes depend on the folder, which differs between machines. */
function contentName(name: string, text: string): string {
  return `dashboard-${Bun.hash(text).toString(36)}${name.slice(name.lastIndexOf('.'))}`
}

function renamed(page: string, files: readonly { readonly name: string; readonly keptAs: string }[]): string {
  return files.reduce((text, { name, keptAs }) => text.replaceAll(`"/assets/${name}"`, `"/assets/${keptAs}"`), page)
}

async function packed(type: string, plain: Uint8Array): Promise<SiteFile> {
  // Brotli, at its highest level by default, is 5% smaller than zstd. Browsers accept it on HTTPS and on loopback.
  const [gzipped, brotli] = await Promise.all([promisify(gzip)(plain, { level: 9 }), promisify(brotliCompress)(plain)])
  return { type, bodies: { identity: plain, gzip: gzipped, br: brotli } }
}
