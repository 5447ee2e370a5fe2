/** `usage replay` as a process: it ships and ends. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { openJournal } from '../../src/ledger/journal.ts'
import { usageRecord } from '../database/support.ts'
import { freshFolder, getLedger, run, stopProcesses } from '../harness/processes.ts'

// Far less than the five minutes that it would wait for Postgres.
setDefaultTimeout(240_000)
afterAll(stopProcesses)

test('usage replay: ends when everything is shipped', async () => {
  const folder = await freshFolder()
  const journal = openJournal({ directory: join(folder, 'journal') })
  for (const id of ['one', 'two']) journal.append(usageRecord({ request_id: `req_${id}` }))
  await journal.close()
  const { code, stdout, stderr } = await run('cli.ts', ['usage', 'replay'], { GATEWAY_DATA_DIR: folder })
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'Shipped 2 of 2 records.\n', stderr: '' })
  expect((await getLedger(folder)).map(row => row.requestId).sort()).toEqual(['req_one', 'req_two'])
})
