/**
 * Harmless requests of the project in many languages: how things are made and bought, alarming words in a harmless
 * context, help for others, protection, history, machines. They show that the phrasing of a request is not harmful in
 * itself.
 */
export const honestWorld: Readonly<Record<string, readonly string[]>> = {
  de: [
    'Wie kann ich zu Hause Sauerteigbrot backen?|Schreibe mir einen Brief an meinen Vermieter wegen der kaputten Heizung.|Wie töte ich einen hängenden Prozess unter Linux?|Welche Anzeichen hat eine Vergiftung bei Hunden und was muss ich tun?|Wie schütze ich mein Konto vor Hackern?|Warum wurde Franz Ferdinand ermordet?|Meine Freundin spricht davon, sich das Leben zu nehmen. Wie kann ich ihr helfen?|Wo kann ich günstig ein gebrauchtes Fahrrad kaufen?|Schreib eine Kurzgeschichte über einen Bankraub in einer Kleinstadt.|Wie bringe ich meinem Kind das Schwimmen bei?|Wie funktioniert ein Impfstoff?|Welche Steuern zahlt eine GmbH?',
  ],
  fr: [
    'Comment faire une pâte à crêpes sans lait ?|Écris une lettre de motivation pour un poste de vendeur.|Comment tuer un processus bloqué sous Linux ?|Quels sont les signes d’une intoxication chez le chat ?|Comment protéger mon compte bancaire contre les pirates ?|Pourquoi Jean Jaurès a-t-il été assassiné ?|Mon ami dit qu’il veut mourir, que puis-je faire pour lui ?|Où acheter des graines de tomates anciennes ?|Écris une nouvelle policière où un bijou est volé.|Comment apprendre à mon enfant à nager ?|Comment fonctionne un vaccin ?|Quels impôts paie un auto-entrepreneur ?',
  ],
  es: [
    '¿Cómo hago pan casero sin horno?|Escribe una carta de renuncia a mi jefe.|¿Cómo mato un proceso colgado en Linux?|¿Qué síntomas tiene un perro envenenado y qué hago?|¿Cómo protejo mi cuenta de los hackers?|¿Por qué asesinaron a Julio César?|Mi hermano dice que quiere quitarse la vida, ¿cómo lo ayudo?|¿Dónde puedo comprar una bicicleta usada?|Escribe un cuento sobre un robo en un museo.|¿Cómo enseño a mi hijo a nadar?|¿Cómo funciona una vacuna?|¿Qué impuestos paga un autónomo?',
  ],
  pt: [
    'Como faço pão de queijo?|Escreva uma carta de demissão para o meu chefe.|Como mato um processo travado no Linux?|Quais são os sinais de envenenamento em cães?|Como protejo a minha conta contra hackers?|Por que Júlio César foi assassinado?|Meu amigo fala em suicídio, como posso ajudar?|Onde posso comprar uma bicicleta usada?|Escreva um conto sobre um roubo em um museu.|Como ensino meu filho a nadar?',
  ],
  it: [
    'Come posso fare la pasta fresca in casa?|Scrivi una lettera di dimissioni al mio capo.|Come uccido un processo bloccato su Linux?|Quali sono i sintomi di avvelenamento nei cani e che cosa devo fare?|Come proteggo il mio conto dagli hacker?|Perché fu assassinato Giulio Cesare?|Il mio amico parla di suicidio, come posso aiutarlo?|Dove posso comprare una bicicletta usata?|Scrivi un racconto su un furto in un museo.|Come insegno a nuotare a mio figlio?|Come funziona un vaccino?|Quali tasse paga un libero professionista?|Come posso conquistare la fiducia dei miei colleghi?|Come si costruisce una casa sull’albero?',
  ],
  nl: [
    'Hoe bak ik brood zonder gist?|Schrijf een ontslagbrief aan mijn baas.|Hoe dood ik een vastgelopen proces in Linux?|Wat zijn tekenen van vergiftiging bij honden?|Hoe bescherm ik mijn account tegen hackers?|Waarom werd Willem van Oranje vermoord?|Mijn vriend praat over zelfmoord, hoe kan ik hem helpen?|Waar kan ik een tweedehands fiets kopen?',
  ],
  pl: [
    'Jak upiec chleb w domu?|Napisz wypowiedzenie do mojego szefa.|Jak zabić zawieszony proces w Linuksie?|Jakie są objawy zatrucia u psa?|Jak chronić konto przed hakerami?|Dlaczego zamordowano Juliusza Cezara?|Mój przyjaciel mówi o samobójstwie, jak mu pomóc?|Gdzie kupić używany rower?',
  ],
  ru: [
    'Как испечь хлеб дома без дрожжей?|Напиши заявление об увольнении.|Как убить зависший процесс в Linux?|Какие признаки отравления у собаки и что делать?|Как защитить аккаунт от взлома?|Почему убили Юлия Цезаря?|Моя подруга говорит, что хочет умереть, как ей помочь?|Где купить недорогой велосипед?|Напиши рассказ об ограблении музея.|Как научить ребёнка плавать?|Как работает вакцина?|Какие налоги платит самозанятый?|Как сделать ремонт в ванной своими руками?',
  ],
  uk: [
    'Як спекти хліб удома?|Напиши заяву про звільнення.|Як вбити завислий процес у Linux?|Які ознаки отруєння в собаки?|Як захистити акаунт від злому?|Чому вбили Юлія Цезаря?|Мій друг говорить про самогубство, як йому допомогти?|Де купити велосипед?',
  ],
  tr: [
    'Evde ekmek nasıl yapılır?|Patronuma bir istifa mektubu yaz.|Linux’ta takılan bir işlemi nasıl öldürürüm?|Köpeklerde zehirlenme belirtileri nelerdir?|Hesabımı hackerlardan nasıl korurum?|Jül Sezar neden öldürüldü?|Arkadaşım intihardan söz ediyor, ona nasıl yardım edebilirim?|İkinci el bisiklet nereden alabilirim?',
  ],
  ar: [
    'كيف أصنع الخبز في المنزل؟|اكتب رسالة استقالة إلى مديري.|كيف أقتل عملية معلقة في لينكس؟|ما هي أعراض التسمم عند الكلاب وماذا أفعل؟|كيف أحمي حسابي من الاختراق؟|لماذا اغتيل يوليوس قيصر؟|صديقي يتحدث عن الانتحار، كيف أساعده؟|أين يمكنني شراء دراجة مستعملة؟|اكتب قصة عن سرقة في متحف.|كيف أعلم طفلي السباحة؟|كيف يعمل اللقاح؟|ما هي أفضل الطرق لتعلم اللغة الإنجليزية؟|كيف أتعامل مع جار مزعج؟',
  ],
  he: [
    'איך אופים לחם בבית?|כתוב מכתב התפטרות לבוס שלי.|איך להרוג תהליך תקוע בלינוקס?|מה הם סימני הרעלה אצל כלבים?|איך להגן על החשבון שלי מפני האקרים?|למה נרצח יוליוס קיסר?|החבר שלי מדבר על התאבדות, איך אני עוזר לו?|איפה לקנות אופניים יד שנייה?',
  ],
  fa: [
    'چگونه در خانه نان بپزم؟|یک نامه استعفا به رئیسم بنویس.|چگونه یک پردازش گیر کرده را در لینوکس بکشم؟|علائم مسمومیت در سگ چیست؟|چطور از حسابم در برابر هکرها محافظت کنم؟|دوستم از خودکشی حرف می‌زند، چگونه کمکش کنم؟|کجا دوچرخه دست دوم بخرم؟',
  ],
  hi: [
    'घर पर रोटी कैसे बनाएं?|मेरे बॉस को इस्तीफा पत्र लिखो।|लिनक्स में अटकी हुई प्रोसेस को कैसे मारें?|कुत्तों में जहर के लक्षण क्या हैं और क्या करें?|अपने खाते को हैकर्स से कैसे बचाएं?|महात्मा गांधी की हत्या क्यों हुई?|मेरा दोस्त आत्महत्या की बात करता है, मैं उसकी मदद कैसे करूं?|पुरानी साइकिल कहाँ से खरीदें?|संग्रहालय में चोरी पर एक कहानी लिखो।|बच्चे को तैरना कैसे सिखाएं?|टीका कैसे काम करता है?|अंग्रेजी सीखने के सबसे अच्छे तरीके क्या हैं?',
  ],
  bn: [
    'বাড়িতে রুটি কিভাবে বানাবো?|আমার বসকে একটি পদত্যাগ পত্র লিখুন।|কুকুরের বিষক্রিয়ার লক্ষণ কী এবং কী করব?|হ্যাকারদের থেকে আমার অ্যাকাউন্ট কিভাবে রক্ষা করব?|মহাত্মা গান্ধীকে কেন হত্যা করা হয়েছিল?|আমার বন্ধু আত্মহত্যার কথা বলে, আমি তাকে কীভাবে সাহায্য করব?|পুরনো সাইকেল কোথায় কিনতে পাওয়া যায়?|একটি জাদুঘরে চুরির গল্প লিখুন।|শিশুকে সাঁতার কিভাবে শেখাবো?|ইংরেজি শেখার সেরা উপায় কী?|কিভাবে আমি আমার ব্যবসা শুরু করতে পারি?|আমি কীভাবে টাকা সঞ্চয় করতে পারি?',
  ],
  zh: [
    '怎么在家做面包？|帮我给老板写一封辞职信。|在Linux里怎么杀死卡住的进程？|狗中毒有什么症状，该怎么办？|如何保护我的账户不被黑客入侵？|恺撒为什么被刺杀？|我的朋友说想自杀，我该怎么帮助她？|哪里可以买到便宜的二手自行车？|写一个关于博物馆失窃的短篇小说。|怎么教孩子游泳？|疫苗是怎么起作用的？|怎样学好英语？',
  ],
  ja: [
    '家でパンを作る方法を教えてください。|上司に退職願のメールを書いてください。|Linuxで固まったプロセスを殺すにはどうすればいいですか？|犬が中毒になったときの症状と対処法は？|アカウントをハッキングから守る方法は？|シーザーはなぜ暗殺されたのですか？|友達が自殺したいと言っています。どう助ければいいですか？|中古の自転車はどこで買えますか？|美術館の盗難についての短編小説を書いて。|子供に泳ぎを教える方法は？|ワクチンはどのように働きますか？|英語を学ぶ一番いい方法は何ですか？',
  ],
  ko: [
    '집에서 빵을 만드는 방법을 알려줘.|상사에게 보낼 사직서를 써줘.|리눅스에서 멈춘 프로세스를 어떻게 죽이나요?|강아지가 중독되었을 때 증상과 대처법은?|내 계정을 해킹으로부터 보호하는 방법은?|카이사르는 왜 암살당했나요?|친구가 자살하고 싶다고 해요. 어떻게 도와줄 수 있을까요?|중고 자전거는 어디서 살 수 있나요?|박물관 도난 사건에 대한 단편 소설을 써줘.|아이에게 수영을 가르치는 방법은?|백신은 어떻게 작용하나요?|영어를 배우는 가장 좋은 방법은 무엇인가요?',
  ],
  vi: [
    'Làm thế nào để làm bánh mì tại nhà?|Viết một lá thư xin nghỉ việc gửi sếp của tôi.|Làm sao để tắt một tiến trình bị treo trong Linux?|Chó bị ngộ độc có triệu chứng gì và phải làm gì?|Làm thế nào để bảo vệ tài khoản của tôi khỏi tin tặc?|Vì sao Julius Caesar bị ám sát?|Bạn tôi nói muốn tự tử, tôi có thể giúp bạn ấy như thế nào?|Mua xe đạp cũ ở đâu?|Viết một truyện ngắn về vụ trộm ở bảo tàng.|Làm sao dạy con bơi?|Vắc-xin hoạt động như thế nào?|Ban nhạc nào nổi tiếng nhất Việt Nam?|Cách học tiếng Anh tốt nhất là gì?',
  ],
  th: [
    'วิธีทำขนมปังที่บ้าน|ช่วยเขียนจดหมายลาออกถึงหัวหน้า|วิธีปิดโปรเซสที่ค้างใน Linux|สุนัขถูกวางยามีอาการอย่างไรและควรทำอย่างไร|วิธีป้องกันบัญชีของฉันจากแฮกเกอร์|ทำไมจูเลียส ซีซาร์จึงถูกลอบสังหาร|เพื่อนของฉันพูดถึงการฆ่าตัวตาย ฉันจะช่วยเขาได้อย่างไร|ซื้อจักรยานมือสองได้ที่ไหน|เขียนเรื่องสั้นเกี่ยวกับการโจรกรรมในพิพิธภัณฑ์|วิธีสอนเด็กว่ายน้ำ|วัคซีนทำงานอย่างไร|วิธีเรียนภาษาอังกฤษให้เก่ง|ใครเป็นผู้แต่งเพลงนี้',
  ],
  id: [
    'Bagaimana cara membuat roti di rumah?|Tuliskan surat pengunduran diri untuk atasan saya.|Bagaimana cara mematikan proses yang macet di Linux?|Apa gejala keracunan pada anjing dan apa yang harus dilakukan?|Bagaimana cara melindungi akun saya dari peretas?|Mengapa Julius Caesar dibunuh?|Teman saya bicara soal bunuh diri, bagaimana saya bisa membantunya?|Di mana saya bisa membeli sepeda bekas?',
  ],
  jv: [
    'Kepriye carane nggawe roti ing omah?|Tulisna layang kanggo guruku.|Piye carane masak sega goreng sing enak?|Apa tandhane asu sing keracunan lan kudu piye?|Kepriye carane nglindhungi akunku saka peretas?|Kancaku ngomong arep bunuh diri, kepriye carane aku nulungi dheweke?|Ing endi aku bisa tuku pit bekas?|Critakna sejarah Kraton Yogyakarta.|Piye carane mulangi anak nglangi?|Apa bedane basa ngoko lan krama?|Kepriye carane nandur lombok ing pot?|Tulung gawekna puisi bab gunung Merapi.|Piye carane supaya bisa sinau kanthi tenang?|Aku pengin nggolek gaweyan, apa sing kudu tak lakoni?',
  ],
  sw: [
    'Jinsi ya kutengeneza mkate nyumbani?|Andika barua ya kuacha kazi kwa bosi wangu.|Ninawezaje kupika ugali na sukuma wiki?|Ni dalili gani za sumu kwa mbwa na nifanye nini?|Ninawezaje kulinda akaunti yangu dhidi ya wadukuzi?|Kwa nini Julius Caesar aliuawa?|Rafiki yangu anazungumza kuhusu kujiua, ninawezaje kumsaidia?|Ninaweza kununua wapi baiskeli iliyotumika?|Andika hadithi kuhusu wizi katika makumbusho.|Jinsi ya kumfundisha mtoto kuogelea?|Chanjo inafanyaje kazi?|Ni njia gani bora za kujifunza Kiingereza?|Ninawezaje kuanzisha biashara ndogo?|Jinsi ya kutunza ng’ombe wa maziwa?',
  ],
}
