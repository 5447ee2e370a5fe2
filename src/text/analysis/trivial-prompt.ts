/**
 * Detects trivial prompts: polite phrases, calculations, and questions with a one-fact or yes/no answer. Enhancing them
 * would only make the output longer. In languages that mark questions, a question without a word that requires more is
 * yes/no. English is decided by the first word, since many English questions have no verb (`any ideas for a
 * birthday?`).
 */

/** Returns true if a prompt of a few lines is trivial. `language` is ISO 639-1. */
export function isTrivialPrompt(prompt: string, language: string): boolean {
  const text = prompt.trim().replace(/^[¿¡"'“«\s]+/, '')
  if (isCourtesy(text) || isOneThing(text)) return true
  const asks = questions[language] ?? questions.en
  if (asks === undefined || isLong(text)) return false
  return (asks.fact.test(text) && !asks.more.test(text)) || isYesOrNo(text, language, asks)
}

type Questions = {
  /** Starts of questions about one fact. */
  readonly fact: RegExp
  /** Words anywhere that require more than a fact, or an explained choice. */
  readonly more: RegExp
  /** Question words, and words that turn a request into a question. */
  readonly open: RegExp
}

/** Returns true for more than one sentence or a long one, which require more than a word. */
function isLong(text: string): boolean {
  return (
    /(?:[!?。！？]|\.(?![\p{L}\p{N}]))\s*\S/u.test(text.replace(/\b(?:mr|mrs|ms|dr|st|vs|u\.s)\./gi, '')) ||
    text.split(/\s+/).length > maximumWords
  )
}

const maximumWords = 16

function isCourtesy(text: string): boolean {
  const isShort = text.split(/\s+/).length <= courtesyWords
  return (isShort && (greeting.test(text) || thanks.test(text))) || politeness.test(text)
}

/** A longer prompt that starts with a greeting continues with a request. */
const courtesyWords = 5

const greeting = opening(
  `hi|hello|hey|hiya|howdy|yo|sup|greetings|welcome|thanks|thank you|thx|ty|cheers|good (?:morning|afternoon|evening|night|day)|bye|goodbye|see you|ok|okay|yes|no|yep|nope|sure|great|cool|nice|perfect|sorry|(?:please|why not|how so|says who|not yet|not now|good bot|well done)(?=[.!?]*$)|
  hola|buenos días|buenas(?: tardes| noches)?|gracias|muchas gracias|adiós|bonjour|bonsoir|salut|coucou|merci|au revoir|hallo|guten (?:morgen|tag|abend)|gute nacht|servus|moin|danke|vielen dank|tschüss|olá|oi|bom dia|boa (?:tarde|noite)|obrigad[oa]|muito obrigad[oa]|valeu|tchau|
  ciao|salve|buongiorno|buonasera|buonanotte|grazie|arrivederci|hoi|goedemorgen|goedemiddag|goedenavond|goedendag|bedankt|dank (?:je|u)|dag|cześć|dzień dobry|dobry wieczór|dziękuję|dzięki|witam|merhaba|selam|günaydın|iyi (?:akşamlar|günler|geceler)|teşekkürler|teşekkür ederim|sağ ol|
  привет|здравствуйте?|до (?:завтра|встречи)|добрый (?:день|вечер)|доброе утро|спасибо|пока|до свидания|привіт|вітаю|доброго (?:дня|ранку|вечора)|добрий (?:день|вечір|ранок)|дякую|
  hasta (?:mañana|luego|pronto)|à (?:demain|bientôt)|bonne (?:nuit|journée)|bis (?:morgen|bald|später)|até (?:amanhã|logo)|a (?:domani|presto)|buona notte|tot (?:ziens|morgen)|welterusten|do (?:zobaczenia|jutra)|dobranoc|görüşürüz|спокойной ночи|добраніч|на добраніч|до побачення|
  안녕|안녕하세요|감사합니다|고마워|고맙습니다|مرحبا|مرحباً|أهلا|أهلاً|السلام عليكم|صباح الخير|مساء الخير|شكرا|شكراً|नमस्ते|नमस्कार|धन्यवाद|शुक्रिया|सुप्रभात`,
)

/** Thanks, including praise or a reason. */
const thanks =
  /^(?:many|большое|огромное|велике|щиро|정말|너무|도와주셔서|बहुत|आपका|bardzo|çok) (?:thanks|спасибо|дякую|고마워요?|고맙습니다|감사합니다|धन्यवाद|शुक्रिया|dziękuję|teşekkürler|teşekkür ederim)[.!…。！\s]*$/iu

/** Polite phrases of any length, and greetings in scripts without spaces. */
const politeness =
  /^(?:(?:hi|hello|hey)[,!. ]+)?(?:thanks|thank you|how are you|how(?:'|’)?s it going|what(?:'|’)s up|nice to meet you|good to see you|see you|have a (?:nice|good|great)|are you there)(?![\p{L}])[^,;:.]{0,60}[.!?]*$|^(?:(?:你好|您好|大家好|早上好|早安|晚上好|晚安|下午好|再见|谢谢|多谢|非常感谢|感谢|不客气|こんにちは|こんばんは|おはよう|さようなら|ありがとう|どうも|おやすみ|はじめまして|よろしくお願いします)(?:[你您啊呀吗！!。，、,～\s]|ございます|ございました|なさい|你的帮助|您的帮助|大家)*)+$/iu

/** Returns true if the output is one number, word, choice or sentence, in any language. */
function isOneThing(text: string): boolean {
  return [sum, conversion, pick, lookUp, current, oneSentence].some(kind => kind.test(text))
}

/** Numbers and operators; each unit matches in one way only, so that matching is linear. */
const sum =
  /^(?:what(?:['’]s| is| are| does)|how much (?:is|are)|calculate|compute|work out|(?:wie ?viel|was) (?:ist|sind|ergibt)|berechne|cuánto (?:es|son)|calcula|combien (?:font|fait)|calcule|quanto (?:é|fa|são)|hoeveel is|ile (?:to|jest)|сколько будет|скільки буде)?(?=[^\p{N}]*\p{N})(?:[\d\s.,+\-−–*/×÷·^%=()√?？!]|(?<=\d\s?)x(?=\s?\d)|\b(?:plus|minus|times|multiplied by|divided by|over|percent|per cent|of|the|square root|squared|cubed|modulo|mod|to the power|geteilt durch|mal|prozent|von|más|menos|por|entre|de|du|von)\b)+$/iu

const units =
  '(?:°\\s?[CFK]|(?:square |cubic )?(?:[kcm]?m|[kcm]illimet\\p{L}+|(?:kilo|centi|milli)?met(?:er|re)s?|miles?|mi|yards?|yd|feet|foot|ft|inch(?:es)?)[²³]?|hectares?|acres?|kg|g|mg|(?:kilo|milli)?grams?|tonn?e?s?|pounds?|lbs?|ounces?|oz|stones?|(?:milli)?lit(?:er|re)s?|m?l|gallons?|pints?|cups?|tablespoons?|teaspoons?|(?:degrees? )?(?:celsius|fahrenheit|kelvin)|degrees?|radians?|mph|kmh|km/h|kph|knots?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|bits?|[kmgt]?i?b|(?:kilo|mega|giga|tera)?bytes?|joules?|calories|k?cal|watts?|usd|eur|gbp|jpy|dollars?|euros?|yen|decimal|hex(?:adecimal)?|binary|octal|roman numerals?)'

const conversion = new RegExp(
  `^(?:convert|change|what(?:['’]s| is)|how much (?:is|are))?\\s?-?\\d[\\d.,]{0,12}\\s?${units}? (?:to|into|in) ${units}[?.!]*$`,
  'iu',
)

const pick =
  /^(?:(?:give|tell|pick|choose|name|say|think of|generate|guess)(?: me)? (?:a|any|one)(?: random)? (?:number|integer|digit|letter|colou?r|playing card)(?: (?:between|from) \d+ (?:and|to) \d+)?|(?:flip|toss) a coin|roll (?:a|the) (?:die|dice)|(?:the )?(?:option|number|answer|choice|version|step|page|chapter|part|question|example|line) (?:\d{1,4}|[a-e]))[.!?]*$/i

/** Dictionary look-ups of a word. */
const lookUp =
  /^(?:(?:what|which|give me|find|words?|a word)[’'s]* )*(?:(?:is |that )?(?:rhymes?|rhyming)(?: words)? (?:with|for)|(?:an? |the )?(?:synonyms?|antonyms?|opposite|plural|past tense)(?: (?:for|of))?|spell|pronounce|sin[óôo]nimos? de|ant[óôo]nimos? de|synonyme? (?:de|für)|contraire de|gegenteil von|mehrzahl von|plural (?:de|von)|contrario d[ei]|sinonim[oi] di)\s+["“«„]?[\p{L}’'-]+["”»“]?[?.!]*$/iu

/** Current figures. */
const current =
  /^(?:the |what(?:['’]s| is) the )?(?:weather|temperature|forecast|time|date|score|news|[\p{L}]+ (?:price|stock|weather))(?: (?:in|of|for|at|on))?(?: [\p{L}]+){0,2}(?: (?:today|tomorrow|now|tonight))?[?.!]*$/iu

/** An output form that the client requested, which leaves no room for another. */
const oneSentence = within(
  `(?:in|with|using) (?:only |just )?(?:one|a single|1) (?:short |single )?(?:sentence|word|line)|in einem (?:einzigen )?(?:satz|wort)|en una (?:sola )?(?:frase|palabra)|en une (?:seule )?phrase|en un (?:seul )?mot|em uma (?:única )?(?:frase|palavra)|in una (?:sola )?(?:frase|parola)|in (?:één|een enkele?) (?:zin|woord)|jednym (?:zdaniem|słowem)|w jednym (?:zdaniu|słowie)|tek (?:cümleyle|kelimeyle)|одним (?:предложением|словом|реченням)`,
)

function isYesOrNo(text: string, language: string, { open }: Questions): boolean {
  if (language === 'en' || questions[language] === undefined) return englishYesOrNo.test(text) && !open.test(text)
  return isAsked(text, language) && !open.test(text)
}

function isAsked(text: string, language: string): boolean {
  return /[?？؟]["'”»]?$/.test(text) || (unmarked[language]?.test(text) ?? false)
}

/** Questions without a question mark. */
const unmarked: Readonly<Record<string, RegExp>> = {
  zh: /吗[。]?$|是不是|有没有|能不能|可不可以|对不对/,
  ja: /(?:ですか|ますか|でしたか|ましたか|でしょうか|の)。?$/,
  ko: /(?:나요|까요|니까|가요|인가|있어|되나)\.?$/,
  hi: /^क्या\s/,
  ar: /^هل\s/,
  pl: /^czy\s/i,
  uk: /^чи\s/i,
}

const englishYesOrNo =
  /^(?:(?:so|and|but|well|also|hey|hi)[, ]+)?(?:is|are|am|was|were|do|does|did|has|have|had|will|should|shall|might|must|isn['’]?t|aren['’]?t|wasn['’]?t|doesn['’]?t|don['’]?t|didn['’]?t|won['’]?t|can['’]?t|can (?!you\b|u\b)|could (?!you\b)|would (?!you\b)|may)\b/i

const questions: Readonly<Record<string, Questions>> = {
  en: {
    fact: opening(
      `who|whom|whose|who['’]s|when|when['’]s|where|where['’]s|since when|in (?:what|which) (?:year|country|city|century|state|continent)|
      what(?:['’]s| is| are| was| were) (?:the )?(?:name|capital|currency|date|population|height|size|length|depth|weight|mass|age|area|speed|distance|boiling|freezing|melting|chemical|atomic|symbol|formula for|square root|largest|smallest|longest|shortest|highest|tallest|deepest|oldest|youngest|biggest|fastest|slowest|hottest|coldest|closest|nearest|rarest|heaviest|first|last|official|national|opposite|plural|past tense|abbreviation|time|day|year|zip code|phone|number of)|
      what (?:year|day|time|date|month|country|city|state|continent|colou?r|currency|language|planet|element|gas|animal|organ|metal|team|company|nationality|religion|(?:\\w+ )?port|file extension|status code|does [A-Z]{2,6} stand)|
      which (?:year|day|month|country|city|state|continent|ocean|sea|river|lake|mountain|planet|element|gas|animal|bird|organ|bone|metal|team|company|language|president|king|queen|actor|actress|author|artist|band|singer|scientist)|
      how (?:old|tall|far|cold|hot|deep|high|wide|heavy|big|large|fast|long is|long was|long does|long did|many|much is|much was|much does|often)`,
    ),
    more: /\b(?:best|better|worst|differences?|compare|pros|plan|steps|explain|calculate|solve|would|should|each|total|altogether|left|remain|why|how (?:do|to|can|did)|and what)\b/i,
    open: /\b(?:how|why|what)\b|\b(?:better|best|worse|best)\b.*\bor\b|\bor\b.*\b(?:better|best|worse)\b|^should .* or |^is there an? (?:\w+ )?(?:way|method|trick|approach|reason)\b/i,
  },
  es: {
    fact: opening(
      `quién|quiénes|cuándo|dónde|de dónde|a qué hora|en qué (?:año|país|ciudad|siglo|continente|mes)|qué (?:año|día|hora|fecha|mes|país|ciudad|idioma|moneda|planeta|color|animal|río|océano)|cuánto|cuántos|cuánta|cuántas|
      cuál (?:es|era|fue) (?:el|la) (?:capital|nombre|población|moneda|idioma|fecha|altura|símbolo|planeta|país|río|montaña|océano|animal|ciudad|punto de|velocidad|raíz)`,
    ),
    more: within(
      'mejor|diferencia|compara|plan|pasos|explica|calcula|resuelve|debería|cada|total|quedan?|por qué|cómo',
    ),
    open: within(
      'qué|cómo|cuál|cuáles|quién|cuándo|dónde|cuánto|cuántos|por qué|o|mejor|puedes|podrías|puede usted|podría|me ayudas|ideas|consejos',
    ),
  },
  fr: {
    fact: opening(
      `qui|quand|où|d['’]où|en quelle année|dans quel(?:le)? (?:pays|ville|siècle|continent)|à quelle (?:heure|date|distance|vitesse|température)|combien|depuis quand|
      quel(?:le)? (?:année|jour|heure|date|mois|pays|ville|âge|langue|planète|animal|fleuve|océan)|quel(?:le)? (?:est|était|fut) (?:le |la |l['’])(?:capitale|nom|population|monnaie|langue|date|hauteur|symbole|planète|pays|fleuve|montagne|océan|animal|ville|point|vitesse|racine|plus (?:grand|petit|haut|long|vieux|vieille))`,
    ),
    more: within(
      'meilleure?|différences?|compare|plan|étapes|explique|calcule|résous|devrais|chaque|total|reste|pourquoi|comment',
    ),
    open: within(
      "quel|quelle|quels|quelles|comment|pourquoi|qui|quand|où|combien|quoi|qu['’]est|ou|mieux|meilleure?|peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|tu peux|vous pouvez|idées|conseils",
    ),
  },
  de: {
    fact: opening(
      `wer|wen|wem|wessen|wann|wo|woher|wohin|seit wann|in welchem (?:jahr|land|jahrhundert|monat)|in welcher stadt|auf welchem kontinent|wie (?:alt|groß|hoch|weit|tief|lang|schwer|schnell|viel|viele|spät|heißt|oft|lange|teuer)|
      welche[sr]? (?:jahr|tag|land|stadt|sprache|farbe|planet|tier|fluss|währung|ozean)|was ist (?:die|der|das) (?:hauptstadt|name|einwohnerzahl|währung|höchste|größte|kleinste|längste|älteste|siedepunkt|schmelzpunkt|symbol|quadratwurzel|chemische)|wie ist der name`,
    ),
    more: within(
      'beste[nrsm]?|unterschiede?|vergleiche?|plan|schritte|erkläre?|berechne|löse|sollte|jeder|insgesamt|übrig|warum|wieso',
    ),
    open: within(
      'wie|was|warum|wieso|weshalb|welche[rsnm]?|wer|wann|wo|womit|wodurch|oder|besser|kannst du|könntest du|können sie|könnten sie|würdest du|hilfst du|ideen|tipps',
    ),
  },
  pt: {
    fact: opening(
      `quem|quando|onde|de onde|em que (?:ano|país|cidade|século|continente|mês)|a que horas|que (?:ano|dia|horas|data|país|cidade|idioma)|quanto|quantos|quanta|quantas|
      qual (?:é|era|foi) (?:o|a) (?:capital|nome|população|moeda|idioma|língua|data|altura|símbolo|planeta|país|rio|montanha|oceano|animal|cidade|ponto de|velocidade|raiz|maior|menor)`,
    ),
    more: within(
      'melhor|diferença|diferenças|compare|plano|passos|explique|calcule|resolva|deveria|cada|total|sobram?|por que|como',
    ),
    open: within(
      'que|o que|como|qual|quais|quem|quando|onde|quanto|quantos|por que|porque|ou|melhor|pode|poderia|você pode|consegue|ideias|dicas',
    ),
  },
  it: {
    fact: opening(
      `chi|quando|dove|di dove|in che (?:anno|paese|città|secolo)|in quale (?:anno|paese|città|secolo|continente)|a che ora|che (?:anno|giorno|ora|ore|data|lingua)|quanto|quanti|quanta|quante|quant['’]è|
      qual (?:è|era) (?:il |la |lo |l['’])(?:capitale|nome|popolazione|moneta|valuta|lingua|data|altezza|simbolo|pianeta|paese|fiume|montagna|oceano|animale|città|punto|velocità|radice)`,
    ),
    more: within(
      'migliore?|differenza|differenze|confronta|piano|passaggi|spiega|calcola|risolvi|dovrei|ogni|totale|restano|perché|come',
    ),
    open: within(
      "che|cosa|cos['’]è|come|quale|quali|qual|chi|quando|dove|quanto|quanti|perché|o|oppure|meglio|puoi|potresti|può|potrebbe|mi aiuti|idee|consigli",
    ),
  },
  nl: {
    fact: opening(
      `wie|wanneer|waar|sinds wanneer|in welk (?:jaar|land)|in welke (?:stad|eeuw|maand)|hoeveel|hoe (?:oud|groot|hoog|lang|ver|diep|zwaar|snel|veel|laat|heet|vaak)|welke (?:dag|stad|taal|kleur|planeet|rivier|munt)|welk (?:jaar|land|dier)|
      wat is (?:de|het) (?:hoofdstad|naam|bevolking|munt|hoogste|grootste|kleinste|langste|oudste|kookpunt|smeltpunt|symbool|officiële)`,
    ),
    more: within('beste|verschil|verschillen|vergelijk|plan|stappen|leg uit|bereken|los op|zou|elk|totaal|over|waarom'),
    open: within(
      'hoe|wat|waarom|welke|welk|wie|wanneer|waar|hoeveel|of|beter|kun je|kan je|kunt u|zou je|wil je|ideeën|tips',
    ),
  },
  pl: {
    fact: opening(
      `kto|kiedy|gdzie|skąd|dokąd|ile|która godzina|który (?:rok|dzień)|w którym (?:roku|kraju|mieście|wieku)|jak (?:się nazywa|wysoki|wysoka|duży|duża|długi|długa|daleko|głęboki)|
      jak(?:a|i|ie) jest (?:stolica|nazwa|liczba|ludność|waluta|największ\\p{L}+|najmniejsz\\p{L}+|najwyższ\\p{L}+|najdłuższ\\p{L}+|symbol|data)`,
    ),
    more: within(
      'najleps\\p{L}+|różnic\\p{L}*|porównaj|plan|kroki|wyjaśnij|oblicz|rozwiąż|powinien|powinnam|każdy|razem|zostanie|dlaczego|jak (?:zrobić|można)',
    ),
    open: within(
      'jak|co|dlaczego|jaki|jaka|jakie|który|która|które|kto|kiedy|gdzie|ile|lub|albo|lepszy|lepsza|lepsze|możesz|mógłbyś|mogłabyś|czy możesz|pomysły',
    ),
  },
  tr: {
    fact: within(
      'kim|kimdir|ne zaman|nerede|nereli|hangi (?:yıl|yılda|ülke|ülkede|şehir|şehirde|gezegen)|kaç|kaçıncı|saat kaç|başkenti (?:neresi|nedir)|adı ne|para birimi|en (?:yüksek|büyük|küçük|uzun)',
    ),
    more: within('fark\\p{L}*|karşılaştır|plan|adım\\p{L}*|açıkla|hesapla|çöz|neden|nasıl|en iyi|toplam|kalır'),
    open: within(
      'ne|nedir|neden|niçin|nasıl|hangi|hangisi|kim|nerede|kaç|mı yoksa|mi yoksa|yoksa|daha iyi|(?:yaz|yap|yardım ed|ed|çevir|açıkla|anlat)\\p{L}*(?:bilir|ar|er|ır|ir) m[ıi]s[ıi]n\\p{L}*',
    ),
  },
  ru: {
    fact: opening(
      `кто|кого|кому|чей|чья|когда|где|куда|откуда|с каких пор|сколько|который час|в каком (?:году|веке|городе|месяце)|в какой стране|на каком (?:континенте|языке)|какой (?:сегодня|сейчас|день|год)|как (?:зовут|называется)|
      как(?:ая|ой|ое) (?:столица|население|валюта|самая|самый|самое|высота|площадь|длина|температура|планета|страна|город|река|язык|химический|номер|дата)`,
    ),
    more: within(
      'лучше|лучший|лучшая|разниц\\p{L}*|отлич\\p{L}*|сравни\\p{L}*|план|шаг\\p{L}*|объясни\\p{L}*|вычисли|реши|каждый|всего|осталось|почему|зачем',
    ),
    open: within(
      'как|(?<!ли, )что|чем|почему|зачем|какой|какая|какие|какое|каков|кто|когда|где|сколько|или|лучше|можешь|можете|мог бы|могли бы|не могли|идеи|советы',
    ),
  },
  uk: {
    fact: opening(
      `хто|кого|кому|чий|чия|коли|де|куди|звідки|скільки|котра година|у якому (?:році|столітті|місті)|в якому (?:році|столітті|місті)|в якій країні|у якій країні|який (?:сьогодні|зараз|день|рік)|як (?:звати|називається)|
      як(?:а|ий|е) (?:столиця|населення|валюта|найбільш\\p{L}+|найвищ\\p{L}+|найдовш\\p{L}+|висота|площа|довжина|температура|планета|країна|місто|річка|мова)`,
    ),
    more: within(
      'краще|найкращ\\p{L}+|різниц\\p{L}*|відрізня\\p{L}*|порівня\\p{L}*|план|кроки|поясни\\p{L}*|обчисли|розв’яжи|кожен|всього|залишилось|чому|навіщо',
    ),
    open: within(
      'як|що|чим|чому|навіщо|який|яка|які|яке|хто|коли|де|скільки|або|краще|можеш|можете|міг би|могли б|ідеї|поради',
    ),
  },
  zh: {
    fact: /谁|什么时候|何时|哪(?:一)?(?:年|天|里|儿|国|个国家|个城市|座|位)|在哪|几|多少|多(?:高|大|远|长|深|重|快|久)(?!的影响)|首都是|叫什么名字|最(?:高|大|小|长|深|快)的.{1,6}是/,
    more: /为什么|怎么|如何|区别|比较|对比|计划|步骤|解释|计算|求|最好|应该|一共|还剩|分析|写[一个篇首出]/,
    open: /什么|为什么|怎么|怎样|如何|哪|谁|多少|几|还是|区别|更好|帮我|帮忙|写|请/,
  },
  ja: {
    fact: /誰|だれ|いつ|何[年月日時人歳個本匹枚曜]|どこ|いくつ|いくら|どのくらい|どれくらい|首都は|名前は|一番(?:高い|大きい|長い|深い|小さい)/,
    more: /なぜ|どうして|どうやって|方法|違い|比較|計画|手順|説明|計算|求め|最も良い|おすすめ|べき|全部で|残り|分析|書いて/,
    open: /何|なに|なぜ|どう|どの|どれ|どこ|どちら|どんな|いつ|誰|だれ|いくつ|いくら|それとも|方がいい|くれます|もらえ|いただけ|ください|書い|作っ/,
  },
  ko: {
    fact: /누가|누구|언제|어디|몇|얼마|수도는|이름은|가장 (?:높은|큰|긴|작은|깊은)/,
    more: /왜|어떻게|방법|차이|비교|계획|단계|설명|계산|풀어|최고의|추천|해야|모두|남는|분석|써/,
    open: /무엇|뭐|뭘|왜|어떻게|어떤|어느|무슨|누가|누구|언제|어디|몇|얼마|아니면|더 나|더 좋|해 ?줄|해 ?주|써 ?줄|만들어|수 있나요\?도움|도와/,
  },
  ar: {
    fact: opening(
      'من هو|من هي|من|متى|أين|من أين|كم|في أي (?:عام|سنة|بلد|مدينة|قرن|قارة)|ما (?:هي |هو )?(?:عاصمة|اسم|عملة|عدد|أكبر|أصغر|أطول|أعلى|لغة|تاريخ|مساحة)|أي (?:عام|سنة|بلد|مدينة|كوكب)',
    ),
    more: within('أفضل|الفرق|قارن|خطة|خطوات|اشرح|احسب|حل|لماذا|كيف|المجموع|تبقى'),
    open: within('ما|ماذا|ما هو|ما هي|لماذا|كيف|أي|متى|أين|كم|أم|أو|أفضل|يمكنك|هل يمكنك|هل تستطيع|تستطيع|أفكار'),
  },
  hi: {
    fact: within(
      'कौन|किसने|किसका|किसकी|कब|कहाँ|कहां|कितने|कितना|कितनी|किस (?:साल|वर्ष|देश|शहर|सन)|राजधानी|नाम क्या|सबसे (?:ऊँचा|ऊंचा|बड़ा|छोटा|लंबा|लंबी|बड़ी|ऊँची)',
    ),
    more: within('क्यों|कैसे|अंतर|तुलना|योजना|चरण|समझाइए|समझाओ|गणना|हल|सबसे अच्छा|कुल|बचे|लिखो|लिखिए'),
    open: within('क्यों|कैसे|कौन|कौन-सा|कब|कहाँ|कहां|कितने|कितना|किस|क्या है|क्या हैं|या|बेहतर|सकते हैं|सकते हो|लिख|बता'),
  },
}

/** Matches one of the words at the start. Blanks and line breaks between alternatives are only for readability. */
function opening(alternatives: string): RegExp {
  return new RegExp(`^(?:${alternatives.replace(/\n\s+/g, '')})(?![\\p{L}\\p{M}\\p{N}])`, 'iu')
}

/** Matches one of the words anywhere. */
function within(alternatives: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{M}])(?:${alternatives})(?![\\p{L}\\p{M}])`, 'iu')
}
