/**
 * Machine text that users paste: log lines, queries, records, source, commands. It contains words of crime and news
 * (status, ID, address, kill, attack) but requests nothing: it is neither harmful nor to be looked up, and no labeled
 * set covers it. Evaluated with `test/core/machine-texts.ts`.
 */
import type { Filled } from './example-template.ts'

const services = 'billing|checkout|gateway|inventory|mailer|search|worker-7|auth|reports|node12|web-3|ingest|cache'
const fields =
  'status|address|phone|email|account_id|created_at|salary|location|user_id|device|token|amount|birth_date|license|session|record'
const moreFields = 'id|name|status|state|price|city|number|key|owner|updated_at|details|message|country|score'
const tables =
  'customers|invoices|shipments|employees|patients|devices|sessions|tickets|records|logins|messages|products'
const values = "'open'|'closed'|17|null|'failed'|true|'DE'|2048|'ann'|'pending'|503|'expired'"
const outcomes =
  'ok|failed|500|404|timed out|refused|killed|denied|expired|retrying|queued|shipped|done in 12 ms|503 after 3 attempts'
const requests =
  'kill process|abort transaction|drop connection|attack surface scan|execute job|terminate worker|read record|open session|track event|hit the rate limit|load script|resolve address|attach device|crash dump written|dead letter queue full'
const stamps =
  '2025-03-14T09:26:53Z|[14/Mar/2025:09:26:53 +0000]|Mar 14 09:26:53|09:26:53.589|2025-03-14 09:26:53,589|1741944413|#4821|trace 9f3c2a|req 7b1e'
const levels = 'ERROR|WARN|INFO|DEBUG|FATAL|error|warning'
const variables = 'order|user|account|session|device|ticket|customer|job|response|row|item|payload'
const calls = 'findOne|get|update|remove|fetch|send|load|track|kill|execute|insert|validate|open'
const commands =
  'git status|docker ps|kubectl get pods|kill -9 4321|systemctl restart nginx|npm test|pg_dump shop|ssh ann@10.1.2.3|tail -f app.log|crontab -l|chmod 600 key.pem|curl -I localhost:8080/status|grep -rn status src|ps aux|netstat -tlnp'

export const machineFrames: readonly Filled[] = [
  {
    forms:
      '{stamp} {level} {service}: {deed} status={outcome}|{level} [{service}] {deed}: {outcome}|{stamp} {service} {deed} id=4f2a91 {outcome}|{level}: {deed}, {field}={value}|{service} {stamp} {field}={value} {other}={outcome}|{service} status {outcome}',
    fill: {
      stamp: stamps,
      level: levels,
      service: services,
      deed: requests,
      outcome: outcomes,
      field: fields,
      value: values,
      other: moreFields,
    },
    take: 500,
  },
  {
    forms:
      'SELECT {other}, {field} FROM {table} WHERE {field2} = {value}|SELECT {field} FROM {table}|UPDATE {table} SET {field} = {value} WHERE {other} = {value2};|DELETE FROM {table} WHERE {field} < {value}|INSERT INTO {table} ({other}, {field}) VALUES ({value}, {value2});|ALTER TABLE {table} ADD COLUMN {field} text|select count(*) from {table} group by {field}',
    fill: { other: moreFields, field: fields, table: tables, field2: moreFields, value: values, value2: values },
    take: 300,
  },
  {
    forms:
      '{"{other}": 5, "{field}": {value}, "status": "{outcome}"}|{"error": {"code": "{outcome}", "{field}": {value}}}|{other}: 12\n{field}: {value}\nstatus: {outcome}|{other},{field},status\n1,{value},{outcome}|{table}: [{"{field}": {value}}]|POST /api/{table}/9/{field} {outcome}|GET /v2/{table}?{other}=3&{field}={value} {outcome}',
    fill: { other: moreFields, field: fields, value: values, outcome: outcomes, table: tables },
    take: 300,
  },
  {
    forms:
      'const {variable} = await {table}.{call}({ {other}, {field}: {value} })|if ({variable}.{field} === {value}) return {variable}.{other}|def {call}_{field}({variable}): return {variable}.{other}|const { {other}, {field} } = {variable}|for (const {variable} of {table}) await {call}({variable}.{field})|expect({variable}.{field}).toBe({value})|case "{field}": return this.{other};|print({variable}["{field}"], {variable}["{other}"])|let res = await fetch(\'/{table}?{field}=31\')|match {field} { {value} => Ok(()), _ => Err({other}) }',
    fill: {
      variable: variables,
      table: tables,
      call: calls,
      other: moreFields,
      field: fields,
      value: values,
    },
    take: 500,
  },
  {
    forms: '{command}|$ {command}|{command} # {outcome}|{command} && {command2}|bash: {command}: {outcome}',
    fill: { command: commands, outcome: outcomes, command2: commands },
    take: 150,
  },
]
