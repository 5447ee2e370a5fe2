/**
 * Dashboard files: bundled from `dashboard/` on the first request, kept in memory, compressed once. This keeps the
 * bundler out of startup. A file name contains the hash of its content, so all processes of one release use the same
 * names and browsers may cache the files permanently.
 */
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { DashboardBundle, SiteFile } from './routes.ts'

const entry = new URL('../../dashboard/index.html', import.meta.url)

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
    // Pages that are imported later are files of their own.
    splitting: true,
    publicPath: '/assets/',
    jsx: { runtime: 'automatic', importSource: 'preact', development: false },
  })
  const built = await Promise.all(
    outputs.map(async output => ({
      name: output.path.replace(/^\.?\//, ''),
      type: output.type,
      text: await output.text(),
    })),
  )
  const names = keptNames(built)
  const files = built.map(async ({ name, type, text }) => {
    return [names.get(name) ?? name, await packed(type, new TextEncoder().encode(renamed(text, names)))] as const
  })
  return new Map(await Promise.all(files))
}

const pageName = 'index.html'

/**
 * Returns the name of each file but the page. The bundler's own hashes depend on the folder, which differs between
 * machines. Files import each other, so one hash of all contents, without these names, is part of every name.
 */
function keptNames(files: readonly { readonly name: string; readonly text: string }[]): ReadonlyMap<string, string> {
  const none = new Map(files.map(({ name }) => [name, '']))
  const sorted = files
    .filter(({ name }) => name !== pageName)
    .map(({ name, text }) => ({ name, text: renamed(text, none) }))
    .sort((item, other) => (item.text < other.text ? -1 : 1))
  const hash = Bun.hash(sorted.map(({ text }) => text).join('\n')).toString(36)
  return new Map(
    sorted.map(({ name }, index) => [name, `dashboard-${hash}-${index}${name.slice(name.lastIndexOf('.'))}`]),
  )
}

/** Replaces file names, and hashes that stand without a name: the bundler's loader looks files up by their hash. */
function renamed(text: string, names: ReadonlyMap<string, string>): string {
  return [...names].reduce((so, [name, kept]) => {
    const hash = /^chunk-(\w+)\./.exec(name)?.[1]
    const changed = so.replaceAll(`"/assets/${name}"`, `"/assets/${kept}"`)
    return hash === undefined ? changed : changed.replaceAll(`"${hash}"`, `"${kept}"`)
  }, text)
}

async function packed(type: string, plain: Uint8Array): Promise<SiteFile> {
  // Brotli, at its highest level by default, is 5% smaller than zstd. Browsers accept it on HTTPS and on loopback.
  const [gzipped, brotli] = await Promise.all([promisify(gzip)(plain, { level: 9 }), promisify(brotliCompress)(plain)])
  return { type, bodies: { identity: plain, gzip: gzipped, br: brotli } }
}
