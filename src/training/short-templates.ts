/**
 * Short requests of the project by query type: a few words without a verb, as in a search box, which labeled rows
 * hardly have; and equally short texts that are not requests. Same syntax as `query-templates.ts`.
 */
import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { filled } from './query-templates.ts'

const lists: Readonly<Record<string, string>> = {
  lang: 'python|javascript|java|c++|c#|rust|go|php|typescript|bash|sql|kotlin|swift|ruby|matlab|powershell|scala',
  tool: 'docker|kubernetes|react|django|flask|nginx|postgres|git|terraform|pandas|excel|vue|unity|css|html|redis|npm|webpack|express',
  keyed:
    'sort list|reverse list|filter list|list comprehension|sort array|list to string|remove duplicates|read csv|read file|write file|reverse string|parse json|merge dictionaries|web scraper|http server|date format|string to int|for loop|split string|hashmap|regex email|todo app|login page|rename files|connect database|unit test|join tables|undo commit|copy folder|random password generator|progress bar|environment variable|rest api|print table',
  algo: 'binary search|quicksort|merge sort|bubble sort|dijkstra|knapsack|trie|depth first search|n queens|fibonacci recursion|levenshtein distance|topological sort|huffman coding|reverse linked list|invert binary tree|two sum|sudoku solver|longest palindrome|heap sort|union find|detect cycle in graph|lru cache',
  trouble:
    'not working|not starting|keeps crashing|crashes on startup|fails|is stuck|not loading|keeps restarting|timeout|not found|build fails|permission denied|freezes|stopped working',
  part: 'app|website|script|server|container|build|login|query|test|api|page|deployment|program',
  doc: 'cover letter|resignation letter|thank you note|wedding speech|press release|product description|linkedin post|complaint letter|apology email|job description|out of office message|recommendation letter|blog post|invitation|newsletter|eulogy|essay|meeting notes|elevator pitch|bio|about page|sick leave email|follow up email|welcome message',
  of: 'nurse|teacher|landlord|candles|layoffs|democracy|coffee shop|colleague|grandmother|charity|customers|internship|boss|gym|bakery',
  tone: 'funny|sad|short|love|christmas|birthday|spooky|silly',
  fic: 'poem|story|song|haiku|limerick|joke|fairy tale|monologue|rap|bedtime story|dialogue|riddle',
  hero: 'dragon|autumn|robots|cats|the sea|pirates|winter|my dog|a lost key|villain|the moon|rain|witch',
  planned:
    'meal plan|study plan|training plan|lesson plan|marketing plan|business plan|budget plan|workout plan|travel itinerary|study schedule|project roadmap|workout routine|cleaning schedule|content calendar|garden plan|wedding checklist|morning routine|hiring plan',
  goal: 'marathon|fractions|bakery|rome|beginners|exam|family|spanish|weight loss|startup|small garden|winter|guitar',
  topic:
    'inflation|climate change|social media|remote work|immigration|world war one|the french revolution|tourism|automation|divorce|lockdowns|capital punishment|urbanisation|advertising|globalization|air pollution',
  left: 'cats|iphone|react|python|tea|rent|mysql|car|train|gold|beach|oil|buy|tablet',
  right: 'dogs|android|vue|java|coffee|buy|postgres|bike|plane|silver|mountains|gas|lease|laptop',
  matter:
    'landlord|neighbours|marriage|sleep|taxes|car insurance|dog|back pain|rent|visa|toddler|phone bill|parents|hair|roof|lawn mower|bike|knee|mortgage|passport|teenager|boss|kitchen sink|boiler|houseplants|braces',
  formula: 'x^2 - 9|3x + 5 = 20|x^2 + 2x + 1|sin(x)|x^3|2x - y = 4|e^(2x)|1/x|ln(x)|x^2 - 5x + 6 = 0',
  name: 'barack obama|new york|taylor swift|albert einstein|the lord of the rings|harry potter|star wars|google maps|microsoft word|visual studio code|san francisco|angela merkel|romeo and juliet|adobe photoshop|pride and prejudice|война и мир|владимир путин|北京大学|東京タワー|game of thrones|android studio|final cut pro|call of duty|grand theft auto',
  thing: 'recursion|photosynthesis|inflation|blockchain|gravity|entropy|dna|vaccines|wifi|black holes|mitosis|karma',
  thing_es: 'la recursividad|la fotosíntesis|la inflación|la gravedad',
  thing_fr: 'la récursivité|la photosynthèse|l’inflation|la gravité',
  thing_pt: 'fotossíntese|a inflação|recursão|a gravidade',
  thing_it: 'la fotosintesi|l’inflazione|la ricorsione|la gravità',
  thing_ru: 'рекурсию|фотосинтез|инфляцию|гравитацию',
}

const templates: Readonly<Record<QueryType, string>> = {
  code: `{lang} (sort|read|parse|filter|reverse|split|print|copy) (list|file|json|string|array|table)
    (help|need help|assistance) with (my|a) {lang} (script|program|assignment|project)
    {lang} {keyed}
    {keyed} {lang}
    {keyed} in {lang}
    {lang} {keyed} example
    (simple|write|code|make|build) {keyed} {lang}
    {tool} {keyed} (example|tutorial|command|)
    (regex|dockerfile|sql query|bash script|excel formula|css class|makefile|config) for (email|node|duplicates|backups|dates|a grid|tests)
    (write|make|create) (script|function|code|program|unit test|a website|an app|class)
    {lang} (liste sortieren|datei lesen|zeichenkette umkehren|liste filtern)
    {lang} (trier liste|trier une liste|lire fichier|inverser chaîne)
    {lang} (ordenar lista|leer archivo|invertir cadena|ler arquivo|ordinare lista|leggere file)
    (trier liste|ordenar lista|ordinare lista|lijst sorteren|posortować listę|liste sortieren) {lang}
    {lang} (отсортировать список|прочитать файл|перевернуть строку|відсортувати список)
    {lang} (排序列表|读取文件|リスト ソート|リストを並べ替え|리스트 정렬|파일 읽기|liste sıralama|dosya okuma)`,
  code_algorithm: `{algo}
    {algo} ({lang}|in {lang}|code|pseudocode|solution|implementation)
    (implement|code) {algo}
    {lang} {algo}`,
  debugging: `{tool} {trouble}
    (help|need help) with my {part} (it crashes|it fails|an error|not working)
    (my|) {part} {trouble}
    {lang} (keyerror|type error|nullpointer|segfault|import error|syntax error|index error) (fix|help|)
    (fix|debug) (this|my code|my script|bug|error|it|this bug)
    (cors|404|500|timeout|memory|ssl|syntax|import) error {tool}`,
  analysis: `(causes|effects|impact|consequences|implications|history and impact) of {topic}
    (help|need help) with (my|an) (analysis|case study|literature review) of {topic}
    (analyze|analyse|discuss|evaluate|critique|debate) {topic}
    (swot analysis|market analysis|risk analysis|poem analysis|character analysis|case study) (tesla|coffee|hamlet|startup|solar|macbeth)
    (summarize|summarise|tldr|summary|summary of) (this|hamlet|this article|the odyssey|{topic}|my notes)
    {topic} (causes|effects|impact|consequences|critique)
    (analysiere|ursachen|folgen) {topic}
    (fasse zusammen|zusammenfassen|resume este texto|résume ce texte|riassumi questo testo|resuma este texto|кратко перескажи|总结这篇文章|要約して|요약해줘|özetle|streść tekst|vat samen|لخص هذا النص)`,
  writing: `{doc}
    (help|need help|assistance) with (my|a) {doc}
    {doc} {of}
    {doc} (for|to|about) {of}
    (write|draft) ({doc}|email|letter|essay|article|speech|post)
    (proofread|rewrite|improve|edit|shorten|polish) (this|my essay|my resume|this politely|my email|my cover letter|this paragraph)
    translate (hello|this|good morning|cheese|i love you|this sentence) (french|to german|spanish|japanese|)
    (bewerbung|kündigung|lebenslauf|e-mail|einladung|dankesbrief) (schreiben|verfassen|formulieren|)
    (lettre de motivation|lettre de démission|discours de mariage|courriel d’excuse|invitation anniversaire)
    (carta de renuncia|carta de presentación|discurso de boda|correo de disculpa|carta de apresentação|carta de demissão|discurso de casamento)
    (lettera di dimissioni|lettera di presentazione|motivatiebrief|ontslagbrief|bedankbrief|list motywacyjny|wypowiedzenie umowy|podanie o pracę) (schrijven|napisz|)
    (написать|составить|) (резюме|письмо|сопроводительное письмо|заявление|благодарность|лист|супровідний лист)
    (einladung|kündigung|rede|brief|danksagung|absage) schreiben
    написать (письмо|резюме|заявление|статью)
    (motivatiebrief|brief|toespraak|uitnodiging) schrijven
    写(辞职信|求职信|感谢信|推荐信|邀请函)
    (写邮件|写信|求职信|辞职信|感谢信|メールを書いて|手紙を書いて|お礼のメール|자기소개서|사직서|이메일) (써줘|)
    (özgeçmiş|dilekçe|mektup|istifa mektubu|اكتب رسالة|رسالة استقالة|पत्र लिखो|ईमेल लिखो) (yaz|)
    (traduce|traduis|traduza|traduci|übersetze|vertaal|przetłumacz|çevir|переведи|переклади|翻译|翻訳|번역|ترجم) (hola|bonjour|hallo|ciao|привет|你好|это|questo)`,
  math: `(solve|factor|integrate|differentiate|simplify|graph|derivative of|integral of) {formula}
    (help|need help) with (my|) (algebra|calculus|geometry|fractions|statistics) (homework|exam|worksheet)
    (matrix inverse|compound interest|standard deviation|quadratic equation|area of trapezoid|volume of cone|bayes theorem|long division|chain rule|eigenvalues|linear regression) (calculation|by hand|formula|example|problem|)
    (solve|prove) (quadratic equation|this equation|sqrt 2 irrational|pythagorean theorem|system of equations|this integral)`,
  creative: `(write|tell|make|) {fic}
    (help|need help) with (my|a) {fic}
    {fic} (about|for|) {hero}
    {tone} {fic}
    {hero} {fic}
    (band|startup|dog|character|team|podcast|coffee shop) name ideas
    (fantasy|horror|sci-fi|movie|novel) (plot|story|world|plot idea|character)
    (invent|imagine|design) (board game|a planet|new animal|creature|a holiday|card game)
    (schreib|gedicht|kurzgeschichte|märchen|witz) (ein gedicht|über herbst|katze|meer)
    (poema|cuento|canción|chiste|poème|conte|chanson|blague|poesia|storia|gedicht|verhaal|wiersz|bajka|şiir|hikaye) (mar|otoño|chat|mare|lato|zee|yaz|sonbahar|)
    (напиши|придумай|) (стих|сказку|рассказ|песню|шутку) (про кота|осень|)
    (напиши|вигадай|) (вірш|казку|оповідання|пісню) (про кота|осінь|)
    напиши вірш
    напиши (вірш|казку)
    اكتب قصيدة
    اكتب قصة
    कविता लिखो
    कहानी लिखो
    (कविता|कहानी) लिखिए
    اكتب (قصيدة|قصة|نكتة|أغنية) (عن البحر|قصيرة|)
    (قصيدة|قصة|نكتة|أغنية) (عن البحر|قصيرة|عن الحب)
    (कविता|कहानी|गीत|चुटकुला) (लिखो|सुनाओ|)
    (写诗|写故事|讲笑话|写首歌|詩を書いて|物語を書いて|시 써줘|이야기 써줘)`,
  planning: `{planned}
    (help|need help|assistance) with (my|a) {planned}
    {planned} {goal}
    {planned} for {goal}
    plan (trip|party|wedding|week|vacation|birthday party|vegetable garden|my day|retirement|{goal})
    (weekly|monthly|daily|) {planned}
    (reiseplan|trainingsplan|lernplan|speiseplan|wochenplan|urlaub planen|hochzeit planen) (rom|anfänger|sommer|)
    (plan de voyage|plan d’entraînement|planning semaine|menu de la semaine|plan de entrenamiento|plan de viaje|menú semanal|plano de estudos|plano de treino|piano di studio|piano alimentare|reisplan|trainingsschema|plan treningowy|plan podróży|eğitim planı|gezi planı|çalışma programı)
    (планирование|план) (отпуска|тренировок|поездки|свадьбы|питания)
    (旅行计划|学习计划|健身计划|旅行プラン|勉強計画|여행 계획|운동 계획|خطة دراسة|خطة سفر|यात्रा योजना|पढ़ाई की योजना)`,
  comparison: `{left} (vs|or|versus) {right}
    (compare|comparing) {left} {right}
    (compare|difference|differences) (phones|laptops|banks|insurance|http and https|plans)
    (pros and cons|advantages|pros cons) (nuclear|remote work|uniforms|zoos|electric car)
    (hund|kaufen|tee|bus|meer) oder (katze|mieten|kaffee|bahn|berge)
    (té|mate|vino) o café
    thé ou café
    (perro|comprar|té|autobús|playa) o (gato|alquilar|café|tren|montaña)
    (chien|acheter|thé|bus|mer) ou (chat|louer|café|train|montagne)
    (cane|comprare|tè|treno|mare) o (gatto|affittare|caffè|aereo|montagna)
    (cachorro|comprar|chá|carro|praia) ou (gato|alugar|café|moto|montanha)
    (hond|kopen|thee) of (kat|huren|koffie)
    (pies|kupno|herbata) czy (kot|wynajem|kawa)
    (кошки|чай|купить|море|поезд) или (собаки|кофе|снимать|горы|самолёт)
    (кішки|чай|купити) чи (собаки|кава|орендувати)
    (猫|茶|买房|苹果) (还是|和|vs) (狗|咖啡|租房|安卓)
    (kedi|çay|ev almak) mı (köpek|kahve|kiralamak) mı`,
  other: `(that |this |it |) (sounds|looks|seems|feels|works) (good|great|fine|right|wrong|better|perfect)
    (help|need help|i need help|can you help|assistance) with (my|the) {matter}
    (my|) {matter} (help|advice|trouble|question)
    (you are|you're|that's) (wrong|right|funny|kidding|welcome)
    {name}
    {name}
    explain {thing}
    {thing} (explained|meaning|definition)
    (speed|height|capital|population|author|distance|mass) of (light|france|the moon|the sun|dracula|everest|gold)
    (chemical symbol|boiling point|currency|plural|opposite|synonym) (of|for) (gold|water|japan|ox|hot|happy)
    (distance to|how far is|how big is) (the moon|mars|london|the sun)
    make it (shorter|longer|better|again|simpler|funnier)
    (you are|that is|this is|it is) (wrong|right|great|not what i meant|better|funny|nonsense)
    (i am|i'm|my name is|call me|we are) (tom|anna|bored|tired|30 years old|from spain|a teacher)
    (shorter|again|continue|more|another one|next|the second one|option b|in english|be brief) (please|)
    (tell me more|go on|try again|not that one|something else|say it again|let's go|good luck|see you)
    (rhymes with|words that rhyme with|spell|pronounce) (orange|cat|necessary|bread)
    explica {thing_es}
    (explique|explique-moi) {thing_fr}
    explica {thing_pt}
    spiega {thing_it}
    (объясни|поясни) {thing_ru}
    (解释|说明)(递归|光合作用|重力|通货膨胀)
    (再帰|重力|光合成)を説明して
    (재귀|중력|광합성) 설명해줘
    (özyinelemeyi|fotosentezi|yerçekimini) açıkla
    (wyjaśnij|objaśnij) (rekurencję|grawitację|fotosyntezę)
    (erkläre|erklär) (rekursion|inflation|schwerkraft|photosynthese)
    (leg fotosynthese uit|leg recursie uit|اشرح الجاذبية|اشرح التضخم|गुरुत्वाकर्षण समझाओ|प्रकाश संश्लेषण समझाओ)`,
}

/** Returns the project's short requests with their types, `each` of every template. Deterministic. */
export function shortRequestsOfOurOwn(each: number): readonly { readonly type: QueryType; readonly text: string }[] {
  return queryTypes.flatMap(type => filled(templates[type], lists, each).map(text => ({ type, text })))
}
