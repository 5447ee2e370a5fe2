/** Internal addresses in all spellings known to bypass checks, generated so that none is missing. */

/** Non-public IPv4 addresses, and one that is only reachable inside a cloud. */
export const insideV4 = [
  '127.0.0.1',
  '127.127.127.127',
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.5',
  '10.255.255.254',
  '172.16.0.1',
  '172.31.255.254',
  '192.168.0.1',
  '192.168.255.254',
  '169.254.169.254',
  '169.254.170.2',
  '100.64.0.1',
  '100.100.100.200',
  '192.0.0.192',
  '192.0.2.1',
  '198.18.0.1',
  '198.51.100.7',
  '203.0.113.9',
  '168.63.129.16',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
] as const

export const insideV6 = [
  '::',
  '::1',
  '::7f00:1',
  '::ffff:7f00:1',
  'fe80::1',
  'fec0::1',
  'fc00::1',
  'fd00:ec2::254',
  'fd12:3456:789a::1',
  'ff02::1',
  '100::1',
  '100:0:0:1::1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::a9fe:a9fe',
  '2001::1',
  '2001:2::1',
  '2001:10::1',
  '2001:20::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '2002:a9fe:a9fe::1',
  '3ffe::1',
  '3fff::1',
  '4000::1',
  '5f00::1',
] as const

const names = [
  'localhost',
  'LOCALHOST',
  'localhost.',
  'foo.localhost',
  'foo.localhost.',
  'redis',
  'postgres',
  'metadata',
  'intranet',
  'kubernetes',
  'metadata.google.internal',
  'metadata.google.internal.',
  'METADATA.GOOGLE.INTERNAL',
  'instance-data.ec2.internal',
  'host.docker.internal',
  'gateway.docker.internal',
  'printer.local',
  'printer.local.',
  'router.home.arpa',
  'ＬＯＣＡＬＨＯＳＴ',
  'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
  'local%68ost',
  'foo。localhost',
  'ex ample.com',
  'a..example.com',
  '.example.com',
  'example.com..',
  `${'a'.repeat(64)}.example.com`,
  `${'a.'.repeat(130)}example.com`,
]

const schemes =
  'file ftp ftps gopher dict ldap ldaps tftp data javascript s3 jar ws wss blob view-source netdoc sftp ssh telnet redis mailto about'.split(
    ' ',
  )
const ports = [1, 21, 22, 25, 81, 444, 2375, 3000, 3306, 5432, 6379, 8000, 8080, 8443, 9200, 11_211, 27_017, 65_535]

/** Returns all of them, more than 1,500, without duplicates. */
export function payloads(): readonly string[] {
  const hosts = [...insideV4.flatMap(spellings), ...insideV6.flatMap(bracketed), ...names]
  return [
    ...new Set([
      ...hosts.map(host => `http://${host}/`),
      ...hosts.map(
        (host, index) =>
          `${index % 2 === 0 ? 'https' : 'HTTP'}://${host}:${index % 2 === 0 ? 443 : 80}/latest/meta-data/?x=1#y`,
      ),
      ...insideV4.flatMap(disguised),
      ...schemes.flatMap(scheme => [`${scheme}://127.0.0.1/`, `${scheme}:///etc/passwd`, `${scheme}:127.0.0.1`]),
      ...ports.flatMap(port => [`http://93.184.216.34:${port}/`, `https://pages.example.com:${port}/`]),
      'http://user:password@pages.example.com/',
      'http://user@pages.example.com/',
      'http://:password@pages.example.com/',
      `http://pages.example.com/${'a'.repeat(2048)}`,
      'http://',
      'http:///',
      '//127.0.0.1/',
      '127.0.0.1',
      '',
    ]),
  ]
}

/** Returns the ways to write an IPv4 address that some parser accepts. */
function spellings(dotted: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  const number = ((a * 256 + b) * 256 + c) * 256 + d
  const hex = (value: number) => `0x${value.toString(16)}`
  const octal = (value: number) => `0${value.toString(8)}`
  const pair = (high: number, low: number) => (high * 256 + low).toString(16)
  const mapped = `${pair(a, b)}:${pair(c, d)}`
  return [
    dotted,
    `${dotted}.`,
    String(number),
    hex(number),
    hex(number).toUpperCase(),
    octal(number),
    [a, b, c, d].map(hex).join('.'),
    [a, b, c, d].map(octal).join('.'),
    [a, b, c, d].map(value => `000${value.toString(8)}`).join('.'),
    `${hex(a)}.${octal(b)}.${c}.${d}`,
    `${a}.${b * 65_536 + c * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    `${hex(a)}.${hex(b * 65_536 + c * 256 + d)}`,
    dotted.replaceAll('.', '。'),
    dotted.replaceAll('.', '%2e'),
    dotted.replaceAll('.', '．'),
    [...dotted].map(character => (character === '.' ? '.' : String.fromCodePoint(0xff10 + Number(character)))).join(''),
    [...dotted].map(character => (character === '.' ? '.' : `%3${character}`)).join(''),
    `[::ffff:${dotted}]`,
    `[::ffff:${mapped}]`,
    `[0:0:0:0:0:FFFF:${mapped}]`,
    `[::${dotted}]`,
    `[::${mapped}]`,
    `[::ffff:0:${mapped}]`,
    `[64:ff9b::${dotted}]`,
    `[64:ff9b:1::${mapped}]`,
    `[2002:${mapped}::]`,
    `[2001:0:${mapped}::1]`,
    `[fe80::5efe:${dotted}]`,
  ]
}

function bracketed(address: string): string[] {
  return [`[${address}]`, `[${address.toUpperCase()}]`, `[${address}%25eth0]`, `[${address}].`]
}

/** Returns URLs that hide the host behind another name or an ignored part. */
function disguised(dotted: string): string[] {
  return [
    `http://pages.example.com@${dotted}/`,
    `http://pages.example.com:80@${dotted}/`,
    `http://pages.example.com%40${dotted}/`,
    `http://${dotted}#@pages.example.com/`,
    `http://${dotted}?@pages.example.com/`,
    `http://${dotted}\\@pages.example.com/`,
    `http://${dotted}:80\\@pages.example.com:80/`,
    `http:\\\\${dotted}\\`,
    `http:${dotted}`,
    `http:////${dotted}/`,
    `\thttp://${dotted}/`,
    `ht\ntp://${dotted}/`,
    `http://${dotted.replace('.', '.\t')}/`,
    `http://${dotted}\r\nHost: pages.example.com/`,
    `http://${dotted}:8080/`,
    `https://${dotted}:22/`,
  ]
}
