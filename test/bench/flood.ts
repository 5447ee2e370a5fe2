/**
 * `bun test/bench/flood.ts`: an upstream that is far faster than its readers. Many huge streams at once, first with
 * readers, then with readers that stop after the first bytes, beside a steady load of small requests. The gateway's
 * memory must not grow with the streams: it stops reading the upstream when a client's socket is full. Prints memory,
 * times, and upstream bytes.
 */
import { command, runCommand } from '../../src/commands/command.ts'
import { cpuSeconds, residentMegabytes } from './load/child.ts'
import { startScript, withMeasured } from './load/measured.ts'
import type { OpenLoad, OpenLoadResult } from './load/open-load.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)
const path = '/v1/chat/completions'
const asked = (fields: object) =>
  JSON.stringify({ model: 'openai/gpt-4.1', messages: [{ role: 'user', content: 'Write a long story.' }], ...fields })
const huge = asked({ stream: true, max_tokens: 32_768, stream_mode: 'realtime' })

type Readers = { received(): number; ended(): number; stop(): void }

/** Opens streams. `isReading` = false: each stops reading after its first bytes. */
function openPromptAnalyzer(port: number, key: string, count: number, isReading: boolean): Readers {
  const request = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nauthorization: Bearer ${key}\r\ncontent-length: ${huge.length}\r\n\r\n${huge}`
  const sockets: Bun.Socket[] = []
  let [received, ended] = [0, 0]
  for (let index = 0; index < count; index++)
    void Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        open(socket) {
          sockets.push(socket)
          socket.write(request)
        },
        data(socket, bytes) {
          received += bytes.length
          if (!isReading) socket.pause()
          else if (bytes.subarray(-64).toString('latin1').includes('\r\n0\r\n\r\n')) ended++
        },
      },
    })
  return {
    received: () => received,
    ended: () => ended,
    stop() {
      for (const socket of sockets) socket.terminate()
    },
  }
}

const bench = command({
  program: 'bun',
  name: 'test/bench/flood.ts',
  about: 'Measure memory and others’ times while an upstream floods the gateway',
  operands: {},
  options: {
    streams: { type: 'string', value: 'N', about: '50 unless given' },
    tokens: { type: 'string', value: 'N', about: 'Of each stream; 120000 unless given' },
    seconds: { type: 'string', value: 'N', about: 'How long each kind of reader is watched; 10 unless given' },
  },
  async run({ options: { streams = '50', tokens = '120000', seconds = '10' } }) {
    await withMeasured(['load/flood-upstream.ts', tokens], {}, async ({ gateway, key, port, upstreamPort }) => {
      const small = async (): Promise<OpenLoadResult> => {
        const options: OpenLoad = {
          port,
          path,
          keys: [key],
          body: asked({ max_tokens: 16 }),
          rate: 40,
          seconds: Number(seconds),
          warmingSeconds: 0,
          connections: 100,
        }
        const child = await startScript('load/open-load.ts', JSON.stringify(options))
        return JSON.parse(child.line) as OpenLoadResult
      }
      const writtenBytes = async () => Number(await (await fetch(`http://127.0.0.1:${upstreamPort}/`)).text())
      say(
        `nobody else     others ${JSON.stringify((await small()).statuses)}, ${residentMegabytes(gateway.pid).toFixed(0)} MB`,
      )
      for (const isReading of [true, false]) {
        const [before, writtenBefore] = [residentMegabytes(gateway.pid), await writtenBytes()]
        const cpuBefore = cpuSeconds(gateway.pid)
        let most = before
        const watch = setInterval(() => {
          most = Math.max(most, residentMegabytes(gateway.pid))
        }, 100)
        const readers = openPromptAnalyzer(port, key, Number(streams), isReading)
        const others = await small()
        clearInterval(watch)
        const taken = (await writtenBytes()) - writtenBefore
        say(
          `${isReading ? 'reading' : 'stopped'}         others ${JSON.stringify(others.statuses)}, at most ${most.toFixed(0)} MB (${before.toFixed(0)} before); ` +
            `${readers.ended()} of ${streams} ended, ${(readers.received() / 1e6).toFixed(1)} MB received, ${(taken / 1e6).toFixed(1)} MB taken from the upstream; ${(cpuSeconds(gateway.pid) - cpuBefore).toFixed(1)} CPU s`,
        )
        readers.stop()
        await Bun.sleep(1_000)
      }
    })
  },
})

process.exitCode = await runCommand(bench, process.argv.slice(2))
