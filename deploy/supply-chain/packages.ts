/**
 * The packages of production: everything that `dependencies` of package.json reach through `bun.lock`, with versions,
 * hashes and licenses. Peers that only need types are left out, as in the image (`--omit=peer`).
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

const ranges = Type.Optional(Type.Record(Type.String(), Type.String()))
const lockSchema = Type.Object({
  workspaces: Type.Object({ '': Type.Object({ dependencies: ranges, optionalDependencies: ranges }) }),
  // `[name@version, registry, { dependencies, … }, integrity]`
  packages: Type.Record(Type.String(), Type.Array(Type.Unknown())),
})
const detailSchema = Type.Object({ dependencies: ranges, optionalDependencies: ranges })
const manifestSchema = Type.Object({ license: Type.Optional(Type.Unknown()) })
type Detail = Static<typeof detailSchema>

export type Package = {
  readonly name: string
  readonly version: string
  /** `sha512-` and base64, as in the lock file. */
  readonly integrity: string
  /** SPDX expression; null = the package states none. */
  readonly license: string | null
  /** `name@version` of what it depends on. */
  readonly dependencies: readonly string[]
}

/** Returns the packages of production in a checkout with `node_modules`, sorted by name. Throws if the lock is invalid. */
export function productionPackages(root: string): readonly Package[] {
  const lock: unknown = Bun.JSONC.parse(readFileSync(join(root, 'bun.lock'), 'utf8'))
  if (!Value.Check(lockSchema, lock)) throw new Error('bun.lock has an unknown format.')
  const { packages, workspaces } = lock
  const found = new Map<string, Package>()
  const visit = (key: string): string => {
    const [id = '', , detail, integrity] = packages[key] ?? []
    const at = String(id).lastIndexOf('@')
    const [name, version] = [String(id).slice(0, at), String(id).slice(at + 1)]
    if (found.has(key)) return String(id)
    const own: Detail = Value.Check(detailSchema, detail) ? detail : {}
    const entry = { name, version, integrity: String(integrity), license: findLicense(root, key) }
    found.set(key, { ...entry, dependencies: [] })
    const dependencies = namesIn(own).flatMap(dependency => {
      const target = resolved(key, dependency, packages)
      return target === null ? [] : [visit(target)]
    })
    found.set(key, { ...entry, dependencies: dependencies.sort() })
    return String(id)
  }
  for (const name of namesIn(workspaces[''])) visit(name)
  return [...found.values()].sort((item, other) => (item.name < other.name ? -1 : 1))
}

/** Returns what package.json asks for, by name and version. */
export function directPackages(root: string, all: readonly Package[]): readonly string[] {
  const { dependencies }: { readonly dependencies: Readonly<Record<string, string>> } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  )
  return all.filter(({ name, version }) => dependencies[name] === version).map(toId)
}

export const toId = ({ name, version }: Package) => `${name}@${version}`

const namesIn = ({ dependencies = {}, optionalDependencies = {} }: Detail) =>
  Object.keys({ ...dependencies, ...optionalDependencies })

/** A dependency is nested under its dependent, or under one of those above it, or at the top. */
function resolved(key: string, name: string, packages: Readonly<Record<string, unknown>>): string | null {
  for (let parent = key; ; parent = getParent(parent)) {
    const candidate = parent === '' ? name : `${parent}/${name}`
    if (Object.hasOwn(packages, candidate)) return candidate
    if (parent === '') return null
  }
}

/** `@a/b/c` → `@a/b`, `a` → ``. */
function getParent(key: string): string {
  return getNames(key).slice(0, -1).join('/')
}

/** Splits `a/@b/c` into the names `a` and `@b/c`. */
function getNames(key: string): readonly string[] {
  return key.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []
}

function findLicense(root: string, key: string): string | null {
  const path = join(root, 'node_modules', getNames(key).join('/node_modules/'), 'package.json')
  if (!existsSync(path)) return null
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'))
  const license = Value.Check(manifestSchema, manifest) ? manifest.license : null
  return typeof license === 'string' ? license : null
}
