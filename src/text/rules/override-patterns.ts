/**
 * Patterns in many languages for instructions at the start of a text to ignore a model's instructions. Naming all of
 * them or the model's own ("all previous instructions", "your system prompt") is always an attack. Naming what may be
 * the user's own ("the previous instructions", "everything above") is one unless the user retracts something of theirs.
 * Naming the user's own ("my last message"), errors, emails or steps is not.
 */

/** End of a clause, as a word that no text contains. */
export const stop = '\ue000'

/** Words before an instruction that do not change its meaning. */
export const politenessPhrases: readonly string[] = [
  'please pls plz kindly now just so ok okay hey hi hello dear also and but then first well alright right simply again instead next',
  'important urgent attention warning notice note update new system user human admin administrator developer root assistant',
  'inst instruction instructions prompt task question input query message text sys s im start 1 2 3',
  'chatgpt gpt gpt4 claude gemini llama copilot grok deepseek mistral bot chatbot ai llm model friend from immediately stop',
  'por favor ahora hola oye bueno desde agora ola ora adesso ciao per favore s il te vous plait svp stp maintenant bonjour salut',
  'bitte jetzt hallo nun sofort also ab alstublieft nu pożalujsta пожалуйста теперь сейчас привет а итак будь добр',
  'lütfen şimdi tolong sekarang hãy vui lòng proszę teraz prosím nyní snälla nu من فضلك الآن رجاء رجاءً مرحبا لطفا कृपया अब',
  '请 請 你 您 好 现 在 現 那 麻 烦 煩',
]

const verbs = 'ignore|disregard|forget|override|bypass|discard|dismiss|overrule|neglect|unlearn'
const told = 'instructions|instruction|directives|directions|guidelines|programming|system-prompt|system-prompts'
const rules = 'rules|orders|prompts|prompt|commands|constraints|restrictions|policies|training|guardrails'
const earlier =
  'previous|prior|preceding|earlier|above|foregoing|past|former|existing|current|initial|original|previously-given'
const sort = 'system|chat|safety|given|user|developer|hidden|default|and-current|or-current|and-future'
const all = 'all|any|every|each'
/** Words that show that a noun also used in business is not qualified further. */
const onward = `${stop}|and|then|now|you|instead|just|given|that-you|you|from-openai|from-your`

/** Returns every combination of the places; '' = the place is omitted. */
function ways(...places: readonly (readonly string[])[]): readonly string[] {
  return places
    .reduce<readonly string[]>(
      (heads, place) => heads.flatMap(head => optional(place).map(one => `${head} ${one}`)),
      [''],
    )
    .map(way => way.replace(/ +/g, ' ').trim())
}

/** An optional single word is one combination, not two. */
function optional(place: readonly string[]): readonly string[] {
  const [first, ...others] = place
  const word = others.find(one => !one.includes(' ') && !one.startsWith('?'))
  return first === '' && word !== undefined ? [`?${word}`, ...others.filter(one => one !== word)] : place
}

const addressed = [
  '',
  'you must|should|shall|will|need-to|have-to|are-to',
  'i want|need|order|command|instruct|require|urge you to',
  'your ~2 task|job|goal|mission is to',
  'let-us|lets|let-s|on',
]

/** Japanese imperative forms. Other forms describe an instruction. */
const obeyed = '無視して|無視しろ|無視しな|無視せよ|忘れて|忘れろ|忘れな|破棄して|破棄しろ|無効にし|わすれて|むしして'

export const overridePatterns: readonly string[] = [
  ...ways(
    addressed,
    [verbs],
    [
      ...ways(
        [all],
        ['', 'of'],
        ['', 'the|your|these|those|other'],
        [earlier],
        ['', sort],
        [told, `${rules} ${onward}`],
      ),
      ...ways(['', all], ['', 'of'], ['your'], ['', earlier], ['', sort], [told, `${rules} ${onward}`]),
      ...ways([earlier], ['', sort], [told]),
      ...ways(
        [all],
        ['', 'of'],
        ['', 'the|your|these|those'],
        [told, rules],
        [
          'above|before|earlier|previously|prior|preceding',
          'so|given|up-to|up-until|until|you ~4 far|above|before|earlier|previously|now|prior',
          'you ~3 given|received|told|got|have',
        ],
      ),
      `all instructions|directives ${stop}|and|then|now`,
      `your ~1 system prompt|message|instructions|rules`,
      'what|whatever|everything|all ~1 you ~3 told|taught|instructed|programmed ~2 above|before|previously|earlier|to',
    ],
  ),
  // French
  ...ways(
    ['', 'tu dois|vous-devez', 'je veux que tu'],
    ['ignore|ignores|ignorez|ignorer|oublie|oublies|oubliez|oublier|neglige|negligez'],
    [
      ...ways(
        ['', 'toutes|tous'],
        ['les|tes|vos|ces'],
        [
          'instructions|consignes|directives|regles|ordres précédentes|précédents|antérieures|ci-dessus|initiales|reçues|données|système',
          'précédentes|précédents|anciennes instructions|consignes|directives|règles|ordres',
        ],
      ),
      'toutes instructions|consignes précédentes|antérieures',
      'tes|vos instructions|consignes|directives',
      'ton|votre prompt',
      `tout ce qu|que ~3 dit|appris|ordonné|demandé ${stop}|et|avant|plus|auparavant|précédemment`,
    ],
  ),
  // Spanish
  ...ways(
    ['', 'debes|tienes-que|quiero-que'],
    [
      'ignora|ignore|ignorad|ignoren|ignorar|ignores|olvida|olvide|olviden|olvidad|olvidar|olvides|descarta|desestima|desatiende',
      'haz|haga|hagan caso omiso de|a',
    ],
    [
      ...ways(
        ['', 'todas|todos'],
        ['las|tus|sus|los|estas'],
        [
          'instrucciones|directrices|órdenes|reglas|indicaciones|directivas anteriores|previas|precedentes|recibidas|iniciales',
          'anteriores|previas instrucciones|directrices|órdenes|reglas|indicaciones',
        ],
      ),
      'instrucciones anteriores|previas',
      'tus|sus instrucciones|directrices',
      'tu|su prompt',
      `todo lo que te|se ~2 dicho|dijeron|enseñado|ordenado|dijo`,
    ],
  ),
  // Italian
  ...ways(
    ['', 'devi'],
    ['ignora|ignori|ignorate|ignorare|dimentica|dimenticate|dimentichi|trascura'],
    [
      ...ways(
        ['', 'tutte|tutti'],
        ['le|tue|vostre|queste|gli', 'le tue|vostre'],
        [
          'istruzioni|direttive|regole|ordini|indicazioni precedenti|anteriori|iniziali|ricevute|date',
          'precedenti istruzioni|direttive|regole|indicazioni',
        ],
      ),
      'le tue istruzioni|direttive',
      'il tuo prompt',
      'tutto ciò|quello che ti ~2 detto|insegnato',
    ],
  ),
  // Portuguese
  ...ways(
    ['', 'deves|você-deve'],
    ['ignore|ignora|ignorem|ignorar|esqueça|esquece|esqueçam|esquecer|desconsidere|desconsidera|despreze'],
    [
      ...ways(
        ['', 'todas|todos', 'de-todas'],
        ['', 'as|suas|tuas|os|das', 'as suas|tuas'],
        [
          'instruções|diretrizes|diretivas|ordens|regras|orientações anteriores|prévias|precedentes|iniciais|recebidas',
          'anteriores|prévias instruções|diretrizes|ordens',
        ],
      ),
      ...ways(['', 'todas'], ['', 'as'], ['suas|tuas'], ['instruções|diretrizes']),
      'tudo o que te|lhe|você ~3 disseram|dito|ensinado|ensinaram',
    ],
  ),
  // German
  ...ways(
    ['', 'du musst|sollst'],
    ['ignoriere|ignorier|ignoriert|ignorieren|vergiss|vergesst|vergessen|missachte|missachten|übergehe', 'lass'],
    ['', 'sie'],
    [
      ...ways(
        ['', 'alle|sämtliche|jegliche|die|deine|ihre', 'alle deine|ihre|diese', 'all deine'],
        [
          'vorherigen|vorherige|bisherigen|bisherige|vorigen|früheren|frühere|vorangegangenen|vorangehenden|obigen|ursprünglichen',
        ],
        ['', 'system'],
        [
          'anweisungen|instruktionen|vorgaben|befehle|regeln|anordnungen|prompts|direktiven|systemanweisungen|systemprompts',
        ],
      ),
      'alle|deine|ihre|all deine|ihre|anweisungen anweisungen|instruktionen|vorgaben',
      'deine|ihre anweisungen|instruktionen|vorgaben|regeln|programmierung',
      'deinen|ihren systemprompt|system-prompt',
      `alles was dir|ihnen ~4 gesagt|beigebracht|aufgetragen`,
    ],
  ),
  // Dutch, Swedish, Danish, Norwegian
  ...ways(
    ['negeer|vergeet'],
    ['', 'al|alle', 'al-je|al-uw', 'je|uw'],
    ['', 'de'],
    ['voorgaande|vorige|eerdere|bovenstaande|voorafgaande'],
    ['instructies|opdrachten|aanwijzingen|richtlijnen'],
  ),
  ...ways(
    ['ignorera|ignorer|glöm|glem|bortse-från|se-bort-fra'],
    ['', 'alla|alle', 'dina|dine', 'de'],
    ['tidigare|föregående|tidligere|forrige|foregående|foregående'],
    ['instruktioner|instruksjoner|instrukser|anvisningar|anvisninger|order|ordrer'],
  ),
  // Russian, Ukrainian
  ...ways(
    ['', 'ты должен|должна', 'вы-должны'],
    ['игнорируй|игнорируйте|игнорировать|проигнорируй|проигнорируйте|забудь|забудьте|отбрось|отбросьте|забыть'],
    ['', 'про|о|обо'],
    [
      ...ways(
        ['', 'все|всех|любые|твои|свои|ваши|эти', 'все|всех твои|свои|ваши|эти|твоих|своих|ваших'],
        [
          'предыдущие|предыдущих|прежние|прежних|прошлые|прошлых|ранние|предшествующие|вышеуказанные|исходные|полученные|начальные',
        ],
        ['', 'системные'],
        ['инструкции|инструкциях|инструкций|указания|указаниях|команды|правила|приказы|директивы|промпты|установки'],
      ),
      `все|всех|твои|свои|ваши инструкции|указания|директивы ${stop}|и|выше|данные|полученные`,
      'всё|все что тебе|вам ~2 говорили|сказали|сказано|велели',
    ],
  ),
  ...ways(
    ['ігноруй|ігноруйте|проігноруй|забудь|забудьте'],
    ['', 'про'],
    ['', 'всі|усі|твої|свої'],
    ['попередні|минулі|наведені-вище'],
    ['інструкції|вказівки|команди|правила'],
  ),
  // Polish, Czech
  ...ways(
    ['zignoruj|ignoruj|zignorujcie|zapomnij|zapomnij-o|pomiń|ignorujte|zapomeň|zapomeň-na|zapomeňte-na'],
    ['', 'wszystkie|wszystkich|swoje|swoich|všechny|všechna', 'swoje|své'],
    ['poprzednie|poprzednich|wcześniejsze|wcześniejszych|dotychczasowe|powyższe|předchozí|dřívější|předešlé'],
    ['instrukcje|instrukcjach|polecenia|poleceniach|wytyczne|instrukce|pokyny|příkazy'],
  ),
  // Turkish, Indonesian, Vietnamese, Hindi
  ...ways(
    [
      'önceki|yukarıdaki|tüm|bütün',
      'önceki|yukarıdaki tüm|bütün',
      'tüm|bütün önceki|yukarıdaki',
      'bundan-önceki ~1 tüm|bütün',
    ],
    ['talimatları|yönergeleri|komutları|talimatlarını|emirleri|kuralları'],
    ['yok|unut|unutun|görmezden|göz|dikkate'],
  ),
  ...ways(
    ['abaikan|lupakan'],
    ['', 'semua|seluruh|segala'],
    ['instruksi|perintah|petunjuk|arahan'],
    ['', 'yang', 'anda'],
    ['sebelumnya|sebelum|terdahulu|di-atas'],
  ),
  ...ways(
    ['bỏ-qua|quên|phớt-lờ'],
    ['', 'đi'],
    ['', 'tất-cả|mọi|toàn-bộ'],
    ['', 'các|những'],
    ['hướng-dẫn|chỉ-dẫn|lệnh|chỉ-thị|mệnh-lệnh'],
    ['', 'ở|đã'],
    ['trước|bên-trên|ở-trên'],
  ),
  'पिछले|पहले|सभी|उपरोक्त|पूर्व ~3 निर्देशों|निर्देश|आदेशों|निर्देशो ~2 अनदेखा|भूल|नजरअंदाज|नज़रअंदाज़|इग्नोर|उपेक्षा',
  // Arabic, Persian, Hebrew
  ...ways(
    ['تجاهل|تجاهلي|تجاهلوا|انس|انسى|إنس|انسَ|أهمل|اهمل'],
    ['', 'جميع|كل|كافة|كلّ'],
    ['التعليمات|الأوامر|الاوامر|الإرشادات|الارشادات|التوجيهات|تعليماتك|القواعد'],
    ['', 'و'],
    ['السابقة|السابقه|أعلاه|اعلاه|المسبقة|الأولى|السالفة'],
  ),
  ...ways(
    ['', 'همه|همهٔ|همه-ی|تمام|کلیه'],
    ['دستورات|دستورالعمل‌های|دستورهای|دستورالعمل-های|فرمان‌های'],
    ['قبلی|پیشین|بالا'],
    ['', 'را'],
    ['', 'کاملا'],
    ['نادیده|فراموش'],
  ),
  ...ways(
    ['התעלם|התעלמי|התעלמו|שכח|שכחי|תתעלם'],
    ['', 'מכל|את-כל|כל|מ|את'],
    ['ההוראות|ההנחיות|הפקודות|מההוראות|מההנחיות'],
    ['הקודמות|שלעיל|הראשוניות'],
  ),
  // Chinese
  ...ways(
    ['忽略|忽視|忽视|无视|無視|忘记|忘記|忘掉|忘却|不要理会|不要理會|别理会|不用管|别管|抛弃|摒弃'],
    ['', '掉|你|您|你们|所有|全部|一切|任何|你的|您的|你所有|你之前', '掉所有|掉你|你所有的'],
    ['之前|以前|以上|先前|前面|上面|上述|此前|前述|前|所有之前|所有以上|原有|原来|早先|早前'],
    [
      '',
      '的',
      '的所有|的全部|的一切|的任何|的系统|的系統|所有|全部|一切|任何|所有的|系统|给你的|給你的|给出的|收到的|告诉你的|给的',
    ],
    ['指令|指示|提示|规则|規則|命令|设定|設定|提示词|提示詞|指引|说明|說明|指導|指导'],
  ),
  ...ways(
    ['忽略|无视|無視|忘记|忘記|忘掉|不要理会'],
    ['', '掉'],
    ['你的|您的|你所有的|你的所有', '所有|一切|全部'],
    ['系统提示|系統提示|系统指令|系統指令|系统设定|指令|提示词|系统提示词|设定|指示'],
    [`${stop}|并|並|然后|然後|和|从|從|你|现在|現在`],
  ),
  // Japanese, Korean
  ...ways(
    ['これまで|今まで|以前|前|上記|先ほど|前述|以上|いままで|上|従来|最初|元'],
    ['', 'の|に|で', 'のすべて|の全て|の全|に与えられた|に受けた|での|に受け取った|に与えた|にあるすべて'],
    ['', 'の|すべて|全て|全|すべての|全ての|あらゆる', 'のすべての|の全ての|システム'],
    ['指示|命令|ルール|指令|プロンプト|規則|設定|インストラクション'],
    ['', '内容', '事項'],
    ['を|は|については|に関しては'],
    ['', 'すべて|全て|全部|一切|完全に'],
    [obeyed],
  ),
  ...ways(
    ['すべて|全て|全|あらゆる'],
    ['', 'の'],
    ['', '以前の|前の|上記の|これまでの|先の|システム'],
    ['指示|命令|ルール|指令|プロンプト|規則'],
    ['を|は'],
    [obeyed],
  ),
  '이전|앞의|앞서|앞선|위의|위|지금까지|기존|상기|여태까지|모든 ~6 지시|명령|지침|프롬프트|규칙|지시사항 ~6 무시해|무시하고|무시하세|무시하라|무시하십|무시하시|무시하도|잊어|잊으|잊고',
]

/** Instructions that may retract the user's own words. They are allowed if a retraction follows. */
export const allowedOverrides: readonly string[] = [
  ...ways(
    addressed,
    ['ignore|disregard|forget|override|discard|dismiss'],
    [
      ...ways(
        ['the|these|those'],
        [earlier],
        ['', sort],
        ['instructions|directives|directions|guidelines|programming|system-prompt'],
      ),
      ...ways(['the|these|those'], ['instructions|directives|directions'], ['above|before|given-above']),
      `everything|all|anything ~1 above|before|prior|earlier|previously|preceding ${stop}|and|then|now|instead`,
      `all|everything ~1 that came before|above ${stop}|and|then|now|instead`,
    ],
  ),
  ...ways(['ignore|disregard|forget'], ['the'], ['system|developer|initial|original|hidden'], ['prompt|instructions']),
  `ignora|olvida|olvide|ignore todo lo anterior|previo ${stop}|y|e|ahora`,
  `oublie|oubliez|ignore|ignorez tout ce qui précède|précédait ${stop}|et|maintenant`,
  `vergiss|vergessen|ignoriere ~1 alles vorherige|bisherige|obige|davor|zuvor|oben ${stop}|und|jetzt`,
  `dimentica|ignora tutto ciò|quello che precede|viene ${stop}|e|prima`,
  `забудь|забудьте|игнорируй|игнорируйте всё|все что ~2 выше|раньше|до ${stop}|и|теперь|этого`,
]

/** Phrases of users who retract something of their own. */
export const retractionPatterns: readonly string[] = [
  'sorry|oops|apologies|mistake|typo|mistakenly|accidentally|misread|misspoke|wrong|confused|mistaken',
  'i meant|misunderstood|forgot|mixed|mistyped|changed|realised|realized|figured|found|solved|fixed|said|wrote|sent|gave|asked',
  'start over|again|fresh',
  'new topic|question|subject',
  'perdón|perdona|perdon|equivoqué|equivocado|quise|quería|lo-siento',
  'désolé|pardon|trompé|trompée|voulais-dire|erreur',
  'entschuldigung|sorry|meinte|verzeihung|irrtum|versehen',
  'scusa|scusi|sbagliato|volevo',
  'извини|извините|ошибся|ошиблась|имел-в-виду|имела-в-виду|прости',
]
