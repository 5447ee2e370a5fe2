/**
 * `bun run sbom`: a CycloneDX 1.6 bill of materials of production, from `bun.lock`. The same checkout gives the same
 * bytes: without a time and a random serial number, two builds can be compared.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { directPackages, type Package, productionPackages, toId } from './packages.ts'

/** Returns the bill of materials of a checkout. */
export function sbomOf(root: string) {
  const { name, version, license, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const packages = productionPackages(root)
  const self = purlOf({ name, version })
  const references = new Map(packages.map(one => [toId(one), purlOf(one)]))
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
    components: packages.map(componentOf),
    dependencies: [
      { ref: self, dependsOn: dependsOn(directPackages(root, packages)) },
      ...packages.map(one => ({ ref: purlOf(one), dependsOn: dependsOn(one.dependencies) })),
    ],
  }
}

function componentOf(one: Package) {
  const purl = purlOf(one)
  return {
    type: 'library',
    'bom-ref': purl,
    name: one.name,
    version: one.version,
    scope: 'required',
    hashes: [{ alg: 'SHA-512', content: Buffer.from(one.integrity.replace('sha512-', ''), 'base64').toString('hex') }],
    ...(one.license === null ? {} : { licenses: [licenseOf(one.license)] }),
    purl,
  }
}

function licenseOf(license: string) {
  return / (OR|AND) /.test(license) ? { expression: license } : { license: { id: license } }
}

/** The `@` of a scope is percent-encoded in a package URL. */
function purlOf({ name, version }: Pick<Package, 'name' | 'version'>): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(sbomOf(join(import.meta.dir, '../..')), null, 2)}\n`)
