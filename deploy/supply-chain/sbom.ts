/**
 * `bun run sbom`: a CycloneDX 1.6 bill of materials of production, from `bun.lock`. The same checkout gives the same
 * bytes: without a time and a random serial number, two builds can be compared.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { directPackages, type Package, productionPackages, toId } from './packages.ts'

/** Returns the bill of materials of a checkout. */
export function getSbom(root: string) {
  const { name, version, license, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const packages = productionPackages(root)
  const self = getPurl({ name, version })
  const references = new Map(packages.map(item => [toId(item), getPurl(item)]))
  const dependsOn = (ids: readonly string[]) => ids.flatMap(id => references.get(id) ?? [])
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': self,
        name,
        version,
        description,
        purl: self,
        licenses: [{ license: { id: license } }],
      },
    },
    components: packages.map(getComponent),
    dependencies: [
      { ref: self, dependsOn: dependsOn(directPackages(root, packages)) },
      ...packages.map(item => ({ ref: getPurl(item), dependsOn: dependsOn(item.dependencies) })),
    ],
  }
}

function getComponent(item: Package) {
  const purl = getPurl(item)
  return {
    type: 'library',
    'bom-ref': purl,
    name: item.name,
    version: item.version,
    scope: 'required',
    hashes: [{ alg: 'SHA-512', content: Buffer.from(item.integrity.replace('sha512-', ''), 'base64').toString('hex') }],
    ...(item.license === null ? {} : { licenses: [getLicense(item.license)] }),
    purl,
  }
}

function getLicense(license: string) {
  return / (OR|AND) /.test(license) ? { expression: license } : { license: { id: license } }
}

/** The `@` of a scope is percent-encoded in a package URL. */
function getPurl({ name, version }: Pick<Package, 'name' | 'version'>): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(getSbom(join(import.meta.dir, '../..')), null, 2)}\n`)
