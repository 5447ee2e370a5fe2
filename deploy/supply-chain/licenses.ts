/** `bun run licenses`: lists the licenses of production packages. Exit code 1 for unknown and copyleft licenses. */
import { join } from 'node:path'
import { productionPackages, toId } from './packages.ts'

/** Permissive licenses, by SPDX ID. */
const allowed = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Python-2.0',
  'Unlicense',
  'Zlib',
])

/**
 * Returns true if an SPDX expression permits use without copyleft: one side of `OR`, all sides of `AND`. False for null,
 * and for anything that is not an expression of IDs.
 */
export function isAllowedLicense(expression: string | null): boolean {
  if (expression === null) return false
  const plain = expression.trim()
  const inner = /^\(([^()]*)\)$/.exec(plain)?.[1]
  if (inner !== undefined) return isAllowedLicense(inner)
  if (/[()]/.test(plain)) return false
  return plain.split(/ OR /).some(side => side.split(/ AND /).every(id => allowed.has(id.trim())))
}

if (import.meta.main) {
  const packages = productionPackages(join(import.meta.dir, '../..'))
  const byLicense = Map.groupBy(packages, ({ license }) => license ?? 'unknown')
  const refused = packages.filter(({ license }) => !isAllowedLicense(license))
  const lines = [
    ...[...byLicense].sort().map(([license, own]) => [license, ...own.map(item => `  ${toId(item)}`)].join('\n')),
    `${packages.length} packages, ${refused.length} with a license that is not allowed.`,
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
  if (refused.length > 0) {
    process.stderr.write(`${refused.map(item => `${toId(item)}: ${item.license ?? 'no license'}`).join('\n')}\n`)
    process.exitCode = 1
  }
}
