/** `models update`: verifies a catalog update from a file or an address, prints its differences, and installs it. */
import { createPublicKey, verify } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { maximumCatalogBytes, parseCatalogUpdate } from '../config/catalog-file.ts'
import { readConfig } from '../config/config.ts'
import { systemErrorText } from '../core/validation/operator-errors.ts'
import { findHolder } from '../database/data-folder.ts'
import { catalog } from '../models/catalog.ts'
import {
  type CatalogDifference,
  type CatalogUpdate,
  catalogDifferences,
  keptFigures,
  withCatalogUpdate,
} from '../models/catalog-update.ts'
import {
  CommandFailure,
  columns,
  command,
  json,
  print,
  printError,
  printJson,
  printTable,
  readNamedFile,
  UsageError,
} from './command.ts'

const fetchMs = 30_000

export const updateModels = command({
  name: 'models update',
  about: 'Install a newer model catalog, and apply it to the gateway that runs here',
  operands: {},
  options: {
    from: { type: 'string', value: 'FILE|URL', about: 'the update; an address needs --sha256 or --public-key' },
    sha256: { type: 'string', value: 'HEX', about: 'the SHA-256 that the update must have' },
    'public-key': {
      type: 'string',
      value: 'FILE',
      about: 'an Ed25519 key (PEM): the signature is read from the same place with .sig',
    },
    'dry-run': { type: 'boolean', about: 'print the differences and install nothing' },
    history: { type: 'boolean', about: 'print what the installed updates changed, and install nothing' },
    json,
  },
  async run({ options }) {
    const { from } = options
    if (options.history === true) {
      showHistory(readConfig().catalogFile, options.json)
      return
    }
    if (from === undefined) throw new UsageError('--from is required: a file or an https address.')
    const isAddress = /^https?:\/\//.test(from)
    if (isAddress && options.sha256 === undefined && options['public-key'] === undefined)
      throw new UsageError('An update from an address must be verified: add --sha256 or --public-key.')
    const config = readConfig()
    const bytes = await read(from)
    if (options.sha256 !== undefined) checkDigest(bytes, options.sha256)
    if (options['public-key'] !== undefined)
      checkSignature(bytes, await read(signaturePlace(from)), options['public-key'])
    const update = updateIn(bytes)
    if (update.date <= config.catalogDate)
      throw new CommandFailure(
        `The update (${update.date}) is not newer than the catalog in use (${config.catalogDate}): nothing to install.`,
      )
    const changed = catalogDifferences(config.publishedModels, withCatalogUpdate(catalog, update))
    const kept = keptFigures(update, config.modelChanges)
    const isInstalled = options['dry-run'] !== true
    // Each line is printed when it is true: the next step may fail.
    const say = (...lines: readonly string[]) => {
      if (!options.json) print(...lines)
    }
    say(...describe(changed, kept))
    if (isInstalled) {
      install(config.catalogFile, bytes)
      say(`Installed the catalog of ${update.date} in ${config.catalogFile}.`)
      keepHistory(config.catalogFile, { installed_at: new Date().toISOString(), date: update.date, changed })
    } else say('Nothing was installed.')
    const pid = isInstalled ? (findHolder(config.dataDirectory)?.pid ?? null) : null
    const reloaded = pid === null ? null : await (await import('./service.ts')).reloadGateway(config.dataDirectory, pid)
    const processes = reloaded?.processes ?? 0
    if (options.json)
      printJson({ date: update.date, file: config.catalogFile, installed: isInstalled, processes, changed, kept })
    else if (reloaded?.problems.length === 0) print(`The running gateway uses it (processes: ${processes}).`)
    else if (isInstalled && reloaded === null) print('Running gateways read it on SIGHUP or at their next start.')
    if (reloaded !== null && reloaded.problems.length > 0)
      throw new CommandFailure(
        ['The running gateway keeps the old catalog:', ...reloaded.problems.map(problem => `- ${problem}`)].join('\n'),
      )
  },
})

type InstalledUpdate = {
  readonly installed_at: string
  readonly date: string
  readonly changed: readonly CatalogDifference[]
}

const historyPath = (catalogFile: string) => `${catalogFile}.history`

/** A line of JSON per installed update. Records have the prices of their request, so that a lost line loses no bill. */
function keepHistory(catalogFile: string, entry: InstalledUpdate): void {
  const path = historyPath(catalogFile)
  writing(path, () => appendFileSync(path, `${JSON.stringify(entry)}\n`))
}

function showHistory(catalogFile: string, asJson = false): void {
  const path = historyPath(catalogFile)
  const lines = existsSync(path) ? readNamedFile(path).toString('utf8').split('\n') : []
  const entries = lines.flatMap(readEntry)
  const torn = lines.filter(line => line !== '').length - entries.length
  if (torn > 0) printError(`${path}: unreadable lines, left out: ${torn}.`)
  const rows = entries.flatMap(({ installed_at: at, date, changed }) =>
    changed.map(({ model, field, from, to }) => [at, date, model, field, from ?? '-', to ?? '-']),
  )
  if (asJson) printJson({ data: entries })
  else printTable([['INSTALLED', 'CATALOG', 'MODEL', 'FIELD', 'BEFORE', 'AFTER'], ...rows])
}

/** A full disk or a crash may have torn a line. */
function readEntry(line: string): readonly InstalledUpdate[] {
  try {
    return [JSON.parse(line)]
  } catch {
    return []
  }
}

function describe(changed: readonly CatalogDifference[], kept: readonly CatalogDifference[]): string[] {
  const rows = (list: readonly CatalogDifference[]) =>
    list.map(({ model, field, from, to }) => [model, field, from ?? '-', to ?? '-'])
  return [
    ...columns([['MODEL', 'FIELD', 'NOW', 'UPDATE'], ...rows(changed)]),
    '',
    ...(kept.length === 0 ? [] : [...columns([['KEPT', 'FIELD', 'UPDATE', 'YOUR CONFIGURATION'], ...rows(kept)]), '']),
  ]
}

function updateIn(bytes: Uint8Array): CatalogUpdate {
  const parsed = parseCatalogUpdate(new TextDecoder().decode(bytes))
  if ('update' in parsed) return parsed.update
  throw new CommandFailure(['The update is invalid:', ...parsed.problems.map(problem => `- ${problem}`)].join('\n'))
}

/** The signature has the same path with `.sig`, before the query of an address. */
function signaturePlace(from: string): string {
  if (!URL.canParse(from)) return `${from}.sig`
  const url = new URL(from)
  url.pathname += '.sig'
  return url.href
}

async function read(from: string): Promise<Uint8Array> {
  if (!/^https?:\/\//.test(from)) return readLocal(from)
  let response: Response
  try {
    response = await fetch(from, { signal: AbortSignal.timeout(fetchMs) })
    if (!response.ok) throw new CommandFailure(`${from} returned status ${response.status}.`)
    return await bounded(response, from)
  } catch (cause) {
    if (cause instanceof CommandFailure) throw cause
    throw new CommandFailure(`Cannot read ${from}: no complete response within 30 s.`)
  }
}

async function bounded(response: Response, from: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of response.body ?? []) {
    length += piece.length
    if (length > maximumCatalogBytes) throw tooLarge(from)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

function readLocal(path: string): Uint8Array {
  const bytes = readNamedFile(path)
  if (bytes.length > maximumCatalogBytes) throw tooLarge(path)
  return bytes
}

function tooLarge(from: string): CommandFailure {
  return new CommandFailure(`${from} is larger than ${maximumCatalogBytes} bytes: it is no catalog update.`)
}

function checkDigest(bytes: Uint8Array, wanted: string): void {
  const digest = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  if (digest !== wanted.trim().toLowerCase())
    throw new CommandFailure(`The SHA-256 of the update is ${digest}, not the given one: nothing was installed.`)
}

/** The signature is base64 of Ed25519 over the bytes of the update. */
function checkSignature(bytes: Uint8Array, signature: Uint8Array, keyPath: string): void {
  const pem = new TextDecoder().decode(readLocal(keyPath))
  if (!isSigned(bytes, Buffer.from(new TextDecoder().decode(signature).trim(), 'base64'), pem))
    throw new CommandFailure(`The signature of the update does not match ${keyPath}: nothing was installed.`)
}

function isSigned(bytes: Uint8Array, signature: Uint8Array, pem: string): boolean {
  try {
    return verify(null, bytes, createPublicKey(pem), signature)
  } catch {
    return false
  }
}

/** Replaces the file in one step, so that a gateway that starts meanwhile reads the old one or the new one. */
function install(path: string, bytes: Uint8Array): void {
  writing(path, () => {
    mkdirSync(dirname(path), { recursive: true })
    const unfinished = `${path}.${process.pid}`
    writeFileSync(unfinished, bytes)
    renameSync(unfinished, path)
  })
}

function writing(path: string, write: () => void): void {
  try {
    write()
  } catch (cause) {
    throw new CommandFailure(`Cannot write ${path}: ${systemErrorText(cause)}.`)
  }
}
